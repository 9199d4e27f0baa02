-- The ledger: everything that must survive a crash of the daemon. Times are milliseconds since 1970
-- (NULL: not yet), money is millionths of the currency's unit, booleans are 0 or 1.

-- What the hooks told, from inbox file to done.
CREATE TABLE orders (
  name  TEXT PRIMARY KEY,     -- the inbox file's name: taking a file twice changes nothing
  kind  TEXT NOT NULL,        -- resume, suspend or resumefail
  hosts TEXT NOT NULL,        -- node names, separated by commas
  at    INTEGER NOT NULL,
  done  INTEGER NOT NULL
) STRICT;

-- One row per job and restart that asked for rented nodes.
CREATE TABLE bursts (
  job         INTEGER NOT NULL,
  restart     INTEGER NOT NULL,
  submit      INTEGER NOT NULL,  -- tells a job from an older one of the same id
  uid         INTEGER NOT NULL,
  state       TEXT NOT NULL,     -- open, started, failed or ended
  nodes       INTEGER NOT NULL,
  gpu_type    TEXT NOT NULL,
  market      TEXT NOT NULL,
  fails       INTEGER NOT NULL,  -- failures in a row, for the growing delay
  reason      TEXT NOT NULL,
  told        TEXT NOT NULL,     -- human part of the job's admin comment
  lifted      INTEGER NOT NULL,
  opened      INTEGER NOT NULL,
  configuring INTEGER,
  started     INTEGER,
  retry_at    INTEGER,
  PRIMARY KEY (job, restart, submit)
) STRICT;

-- One row per attempt to rent one node; written before the first call that could cost money.
CREATE TABLE leases (
  key           TEXT PRIMARY KEY,  -- idempotency key: cluster/job/restart/node/attempt
  job           INTEGER NOT NULL,  -- the burst that it was made for
  restart       INTEGER NOT NULL,
  submit        INTEGER NOT NULL,
  node          TEXT NOT NULL,
  attempt       INTEGER NOT NULL,
  owner_job     INTEGER NOT NULL,  -- the burst that it serves now; 0: none
  owner_restart INTEGER NOT NULL,
  owner_submit  INTEGER NOT NULL,
  state         TEXT NOT NULL,     -- wanted, creating, booting, up, releasing or gone
  gpu_type      TEXT NOT NULL,
  market        TEXT NOT NULL,
  offer_id      TEXT NOT NULL,
  price         INTEGER NOT NULL,  -- per hour
  currency      TEXT NOT NULL,
  minimum_min   INTEGER NOT NULL,
  granularity_s INTEGER NOT NULL,
  reserved      INTEGER NOT NULL,
  request       TEXT NOT NULL,     -- exact body, wiped once answered: the join secret is in it
  secret_sha256 TEXT NOT NULL,
  allocation_id TEXT NOT NULL,
  instance_id   TEXT NOT NULL,
  address       TEXT NOT NULL,
  request_id    TEXT NOT NULL,     -- of the answer that told of the allocation
  tries         INTEGER NOT NULL,
  unanswered    INTEGER NOT NULL,  -- a create was sent, outcome unknown: look the key up first
  doubtful      INTEGER NOT NULL,  -- an earlier create may still arrive
  accepted      INTEGER NOT NULL,  -- the cloud accepted the release
  sent          INTEGER NOT NULL,
  next_try      INTEGER NOT NULL,
  checked       INTEGER NOT NULL,
  created       INTEGER NOT NULL,
  deadline      INTEGER NOT NULL,
  up            INTEGER,
  idle          INTEGER,
  reclaim       INTEGER,
  lost          INTEGER NOT NULL,
  error_class   TEXT,
  error         TEXT NOT NULL,
  billed_from   INTEGER,
  billed_until  INTEGER,
  billed_s      INTEGER NOT NULL,
  cost          INTEGER NOT NULL,
  closed        INTEGER
) STRICT;
-- Never two rented machines serving under one node name.
CREATE UNIQUE INDEX one_live_lease_per_node ON leases (node) 
  WHERE state IN ('wanted', 'creating', 'booting', 'up');
CREATE INDEX leases_by_close ON leases (closed);

-- What happened, for people.
CREATE TABLE events (
  id   INTEGER PRIMARY KEY,
  at   INTEGER NOT NULL,
  job  INTEGER NOT NULL,
  node TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_job ON events (job);
