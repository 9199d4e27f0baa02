// SPDX-License-Identifier: Apache-2.0
// The cloud's API without its transport: a request in, a reply out. Thread-safe; a call may block
// (latency, an idempotency key in flight, a slow reply).
#pragma once

#include "cloudsim/objects.h"
#include "cloudsim/simulator.h"

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace acb::sim {

struct ApiRequest {
  std::string method;
  std::string path;  ///< decoded, without the query
  std::multimap<std::string, std::string> query = {};
  std::string authorization = {};
  std::string idempotency_key = {};
  std::string content_md5 = {};
  std::string range = {};
  std::string body = {};
  ObjectStore::Upload* upload = nullptr;  ///< of a PUT: its body
  bool broken = false;                    ///< the body broke off
};

struct ApiReply {
  enum class Delivery { whole, cut_in_half, connection_closed };
  int status = 200;
  std::string body;  ///< JSON
  std::map<std::string, std::string> headers = {};
  std::optional<OpenObject> object = std::nullopt;  ///< instead of the body: `range` of it
  ByteRange range = {};
  Delivery delivery = Delivery::whole;
};

class Api {
 public:
  /// Both must outlive this. An empty key: any bearer key will do.
  Api(Simulator& simulator, ObjectStore& objects, std::string key)
      : simulator_(simulator), objects_(objects), key_(std::move(key)) {}

  [[nodiscard]] ApiReply handle(const ApiRequest& request);
  /// What an instance asks of its metadata address: "/INSTANCE_ID/v1/metadata/interruption".
  [[nodiscard]] ApiReply handle_metadata(const ApiRequest& request);
  [[nodiscard]] ObjectStore& objects() { return objects_; }

 private:
  using Made = ApiResult<const Allocation*>;
  using Maker = std::function<Made(Fleet&, FaultPlan&, WallTime)>;
  struct Route;
  struct Context {
    const ApiRequest& request;
    std::string id;  ///< the part of the path that names something
  };

  [[nodiscard]] ApiReply answer(const ApiRequest& request,
                                const std::string& request_id,
                                std::string& fault_name);
  [[nodiscard]] ApiResult<ApiReply> dispatch(const ApiRequest& request);
  [[nodiscard]] ApiResult<ApiReply> create(const ApiRequest& request,
                                           Keyspace space,
                                           const Maker& maker);
  [[nodiscard]] ApiResult<ApiReply> list_all(const Context& context, bool jobs);

  [[nodiscard]] ApiResult<ApiReply> allocate(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> list_allocations(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> get_allocation(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> patch_allocation(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> release_allocation(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> list_offers(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> list_prices(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> account(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> create_job(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> list_jobs(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> get_job(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> cancel_job(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> put_object(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> get_object(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> delete_object(const Context& context);
  [[nodiscard]] ApiResult<ApiReply> list_objects(const Context& context);

  Simulator& simulator_;
  ObjectStore& objects_;
  const std::string key_;
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace acb::sim
