# SPDX-License-Identifier: Apache-2.0
# The quickstart's summary, from what the parts themselves wrote: the daemon's record of the burst and its leases,
# the supervisor's events of both runs, and the cloud's bill.
def seconds: sub("\\.(?<f>[0-9]+)Z$"; "Z") as $whole
  | ($whole | fromdate) + (capture("\\.(?<f>[0-9]+)Z$").f | "0.\(.)" | tonumber);
def rounded: . * 1000 | round / 1000;
def steps: map(select(.event == "step"));
def final_loss: steps | last.loss;

$burst[0] as $b
| ($events | map(select(.event == "run")) | first.at | seconds) as $started
| ($events | map(select(.event == "training")) | first.at | seconds) as $training
| ($leases[0].leases | sort_by(.instance)) as $ours
| ($bill[0].instances | sort_by(.instance_id)) as $theirs
| {
    job_id: ($job | tonumber),
    nodes: {
      onprem: (($events | map(select(.event == "start")) | first.nodes | length) - $b.wanted),
      cloud: $b.wanted
    },
    seconds: {
      submit_to_alloc: (($b.allocated_at | seconds) - ($submitted | tonumber) | rounded),
      alloc_to_registered: (($b.registered_at | seconds) - ($b.allocated_at | seconds) | rounded),
      registered_to_start: ($started - ($b.registered_at | seconds) | rounded),
      lost_to_training: ($training - ($lost_at | tonumber) | rounded)
    },
    steps: {
      total: ($events | steps | last.step),
      redone: ($events | map(select(.event == "training").redone) | add)
    },
    first_loss: ($events | steps | first.loss),
    final_loss: ($events | final_loss),
    final_loss_undisturbed: ($undisturbed | final_loss),
    weights_sha256: $hash,
    weights_sha256_undisturbed: $hash_undisturbed,
    leases: [$ours[] | {instance, from, to, billed_s, cost}],
    cost: $bill[0].cost,
    currency: ($ours | first.currency),
    billed_as_ledgered: (
      [$ours[] | [.instance, .from, .to, .billed_s, .cost]] ==
      [$theirs[] | [.instance_id, .from, .to, .billed_s, .cost]]),
    instances_left: ([$theirs[] | select(.status != "released" and .status != "lost")] | length)
  }
