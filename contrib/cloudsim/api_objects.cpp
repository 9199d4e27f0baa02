// SPDX-License-Identifier: Apache-2.0
// The calls about objects.
#include "cloudsim/api.h"

namespace acb::sim {

namespace {

constexpr std::size_t kObjectsPerPage = 1000;  // as of S3's ListObjectsV2

std::string query_or_empty(const ApiRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

}  // namespace

ApiResult<ApiReply> Api::put_object(const Context& context) {
  if (context.request.broken || context.request.upload == nullptr) {
    return bad_argument("body: the upload broke off; nothing is stored");
  }
  const auto stored =
      context.request.upload->commit(context.id, context.request.content_md5, wall_now());
  if (!stored) {
    return tl::unexpected(stored.error());
  }
  ApiReply reply{200, dump_json({{"key", stored->key}, {"size", stored->size}})};
  reply.headers["ETag"] = '"' + stored->etag + '"';
  return reply;
}

ApiResult<ApiReply> Api::get_object(const Context& context) {
  auto opened = objects_.get(context.id);
  if (!opened) {
    return tl::unexpected(opened.error());
  }
  const auto range = parse_range(context.request.range, opened->info.size);
  if (!range) {
    return tl::unexpected(range.error());
  }
  ApiReply reply;
  reply.status = *range ? 206 : 200;
  reply.range = range->value_or(ByteRange{0, opened->info.size});
  reply.headers["ETag"] = '"' + opened->info.etag + '"';
  reply.headers["Accept-Ranges"] = "bytes";
  if (*range) {
    reply.headers["Content-Range"] = "bytes " + std::to_string(reply.range.offset) + "-" +
                                     std::to_string(reply.range.offset + reply.range.length - 1) +
                                     "/" + std::to_string(opened->info.size);
  }
  reply.object = *std::move(opened);
  return reply;
}

ApiResult<ApiReply> Api::delete_object(const Context& context) {
  objects_.remove(context.id);
  return ApiReply{204, {}};
}

ApiResult<ApiReply> Api::list_objects(const Context& context) {
  auto found = objects_.list(query_or_empty(context.request, "prefix"),
                             query_or_empty(context.request, "cursor"),
                             kObjectsPerPage + 1);
  Json next = nullptr;
  if (found.size() > kObjectsPerPage) {
    found.pop_back();
    next = found.back().key;
  }
  Json page = Json::array();
  for (const ObjectInfo& info : found) {
    page.push_back({{"key", info.key},
                    {"size", info.size},
                    {"etag", info.etag},
                    {"modified", format_time(info.modified)}});
  }
  return ApiReply{200, dump_json({{"objects", page}, {"next_cursor", next}})};
}

}  // namespace acb::sim
