// SPDX-License-Identifier: Apache-2.0
#include "spank_plugin/slurm_text.h"

#include "spank_plugin/slurm_compat.h"

namespace acb::spank {

namespace {

void free_text(char*& text) {
  void* item = text;
  slurm_xfree(&item);
  text = nullptr;
}

bool names(const char* entry, std::string_view name) {
  const std::string_view text(entry);
  return text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name);
}

}  // namespace

std::string text_or_empty(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

void assign(char*& field, const std::string& text) {
  free_text(field);
  field = slurm_xstrdup(text.c_str());
}

std::vector<std::string_view> entries_of(char** array, std::uint32_t size) {
  std::vector<std::string_view> entries;
  for (std::uint32_t i = 0; array != nullptr && i < size; ++i) {
    if (array[i] != nullptr) {
      entries.emplace_back(array[i]);
    }
  }
  return entries;
}

void remove_variable(char** array, std::uint32_t& size, std::string_view name) {
  if (array == nullptr) {
    return;
  }
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (array[i] != nullptr && names(array[i], name)) {
      free_text(array[i]);
    } else {
      array[kept++] = array[i];
    }
  }
  for (std::uint32_t i = kept; i < size; ++i) {
    array[i] = nullptr;
  }
  size = kept;
}

void set_variable(char**& array,
                  std::uint32_t& size,
                  std::string_view name,
                  const std::string& value) {
  remove_variable(array, size, name);
  // One more for the terminating null pointer that Slurm keeps behind the last.
  void* memory = slurm_xcalloc(
      std::size_t{size} + 2, sizeof(char*), true, false, __FILE__, __LINE__, __func__);
  auto** grown = static_cast<char**>(memory);
  for (std::uint32_t i = 0; i < size; ++i) {
    grown[i] = array[i];
  }
  grown[size] = slurm_xstrdup((std::string(name) + "=" + value).c_str());
  void* old = array;
  slurm_xfree(&old);
  array = grown;
  ++size;
}

}  // namespace acb::spank
