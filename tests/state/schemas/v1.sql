BEGIN TRANSACTION;
CREATE TABLE applied_plan (
	plan_id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	at INTEGER NOT NULL, 
	PRIMARY KEY (plan_id), 
	FOREIGN KEY(seq) REFERENCES entry (seq)
)
 STRICT

;
CREATE TABLE count_step (
	scope TEXT NOT NULL, 
	reservation_id TEXT NOT NULL, 
	ordinal INTEGER NOT NULL, 
	earliest INTEGER NOT NULL, 
	latest INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (scope, reservation_id, ordinal)
)
 STRICT

;
INSERT INTO "count_step" VALUES('gcp/proj/us-central1','res-1',0,1772632800000000,1772632860000000,'{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"count":2,"earliest":"2026-03-04T14:00:00Z","latest":"2026-03-04T14:01:00Z","usd_per_hour_micro":10000000,"price_source":"test","key":"k1"}');
CREATE TABLE entry (
	seq INTEGER NOT NULL, 
	at INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	moves INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	"key" TEXT, 
	scope TEXT, 
	reservation_id TEXT, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq)
)
 STRICT

;
INSERT INTO "entry" VALUES(1,1772632800000000,'intent',1,'r1','k1','gcp/proj/us-central1',NULL,'{"type":"intent","intent":{"key":"k1","plan_id":"p1","run_id":"r1","request":{"type":"reserve","key":"k1","lineage":"0123456789ab","place":{"scope":{"provider":"gcp","account":"proj","region":"us-central1"},"zone":"us-central1-a","zone_id":null},"machine_type":"a3-highgpu-8g","count":2,"kind":"on-demand","end":null,"targeted":true,"match":[],"tags":[]},"sent":"2026-03-04T14:00:00Z","outcome":null,"usd_per_hour_micro":10000000,"price_source":"test","offer_id":"offer-1","pool":"","tenants":[],"jobs":[]}}');
INSERT INTO "entry" VALUES(2,1772632860000000,'outcome',0,'r1','k1','gcp/proj/us-central1','res-1','{"type":"outcome","key":"k1","outcome":{"status":"done","at":"2026-03-04T14:01:00Z","reservation_id":"res-1","code":"","message":"","request_id":""},"holding":{"reservation":{"id":"res-1","place":{"scope":{"provider":"gcp","account":"proj","region":"us-central1"},"zone":"us-central1-a","zone_id":null},"machine_type":"a3-highgpu-8g","count":2,"state":"active","raw_state":"READY","gpu_model":null,"gpus_per_instance":0,"kind":"on-demand","used":0,"over":0,"associated":0,"billed_from":null,"billed_until":null,"usable_from":null,"usable_until":null,"ends":null,"committed_count":0,"committed_until":null,"targeted":true,"interruptible":false,"match":[],"owner":{"lineage":"0123456789ab","key":"k1"},"tags":[],"usd_per_hour":null,"notes":[]},"steps":[{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"count":2,"earliest":"2026-03-04T14:00:00Z","latest":"2026-03-04T14:01:00Z","usd_per_hour_micro":10000000,"price_source":"test","key":"k1"}],"confirmed":"2026-03-04T14:01:00Z","changed":"2026-03-04T14:01:00Z"}}');
INSERT INTO "entry" VALUES(3,1772632860000000,'use',0,'r1','k1','gcp/proj/us-central1','res-1','{"type":"use","step":{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"at":"2026-03-04T14:01:00Z","used":0},"holding":{"reservation":{"id":"res-1","place":{"scope":{"provider":"gcp","account":"proj","region":"us-central1"},"zone":"us-central1-a","zone_id":null},"machine_type":"a3-highgpu-8g","count":2,"state":"active","raw_state":"READY","gpu_model":null,"gpus_per_instance":0,"kind":"on-demand","used":0,"over":0,"associated":0,"billed_from":null,"billed_until":null,"usable_from":null,"usable_until":null,"ends":null,"committed_count":0,"committed_until":null,"targeted":true,"interruptible":false,"match":[],"owner":{"lineage":"0123456789ab","key":"k1"},"tags":[],"usd_per_hour":null,"notes":[]},"steps":[{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"count":2,"earliest":"2026-03-04T14:00:00Z","latest":"2026-03-04T14:01:00Z","usd_per_hour_micro":10000000,"price_source":"test","key":"k1"}],"confirmed":"2026-03-04T14:01:00Z","changed":"2026-03-04T14:01:00Z"}}');
INSERT INTO "entry" VALUES(4,1772636400000000,'use',0,'','k1','gcp/proj/us-central1','res-1','{"type":"use","step":{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"at":"2026-03-04T15:00:00Z","used":1},"holding":{"reservation":{"id":"res-1","place":{"scope":{"provider":"gcp","account":"proj","region":"us-central1"},"zone":"us-central1-a","zone_id":null},"machine_type":"a3-highgpu-8g","count":2,"state":"active","raw_state":"READY","gpu_model":null,"gpus_per_instance":0,"kind":"on-demand","used":1,"over":0,"associated":0,"billed_from":null,"billed_until":null,"usable_from":null,"usable_until":null,"ends":null,"committed_count":0,"committed_until":null,"targeted":true,"interruptible":false,"match":[],"owner":{"lineage":"0123456789ab","key":"k1"},"tags":[],"usd_per_hour":null,"notes":[]},"steps":[{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"count":2,"earliest":"2026-03-04T14:00:00Z","latest":"2026-03-04T14:01:00Z","usd_per_hour_micro":10000000,"price_source":"test","key":"k1"}],"confirmed":"2026-03-04T15:00:00Z","changed":"2026-03-04T14:01:00Z"}}');
CREATE TABLE heartbeat (
	one INTEGER NOT NULL CHECK (one = 1), 
	body TEXT NOT NULL, 
	PRIMARY KEY (one)
)
 STRICT

;
CREATE TABLE intent (
	"key" TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	ended INTEGER, 
	scope TEXT NOT NULL, 
	reservation_id TEXT, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key"), 
	UNIQUE (seq), 
	FOREIGN KEY(seq) REFERENCES entry (seq)
)
 STRICT

;
INSERT INTO "intent" VALUES('k1',1,'done',1772632860000000,'gcp/proj/us-central1','res-1','{"key":"k1","plan_id":"p1","run_id":"r1","request":{"type":"reserve","key":"k1","lineage":"0123456789ab","place":{"scope":{"provider":"gcp","account":"proj","region":"us-central1"},"zone":"us-central1-a","zone_id":null},"machine_type":"a3-highgpu-8g","count":2,"kind":"on-demand","end":null,"targeted":true,"match":[],"tags":[]},"sent":"2026-03-04T14:00:00Z","outcome":{"status":"done","at":"2026-03-04T14:01:00Z","reservation_id":"res-1","code":"","message":"","request_id":""},"usd_per_hour_micro":10000000,"price_source":"test","offer_id":"offer-1","pool":"","tenants":[],"jobs":[]}');
CREATE TABLE meta (
	one INTEGER NOT NULL CHECK (one = 1), 
	schema_version INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	created INTEGER NOT NULL, 
	quiet_until INTEGER, 
	PRIMARY KEY (one)
)
 STRICT

;
INSERT INTO "meta" VALUES(1,1,'0123456789ab',1772632800000000,NULL);
CREATE TABLE reservation (
	scope TEXT NOT NULL, 
	id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	gone INTEGER NOT NULL, 
	confirmed INTEGER NOT NULL, 
	changed INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (scope, id), 
	FOREIGN KEY(seq) REFERENCES entry (seq)
)
 STRICT

;
INSERT INTO "reservation" VALUES('gcp/proj/us-central1','res-1',4,0,1772636400000000,1772632860000000,'{"id":"res-1","place":{"scope":{"provider":"gcp","account":"proj","region":"us-central1"},"zone":"us-central1-a","zone_id":null},"machine_type":"a3-highgpu-8g","count":2,"state":"active","raw_state":"READY","gpu_model":null,"gpus_per_instance":0,"kind":"on-demand","used":1,"over":0,"associated":0,"billed_from":null,"billed_until":null,"usable_from":null,"usable_until":null,"ends":null,"committed_count":0,"committed_until":null,"targeted":true,"interruptible":false,"match":[],"owner":{"lineage":"0123456789ab","key":"k1"},"tags":[],"usd_per_hour":null,"notes":[]}');
CREATE TABLE scope_look (
	scope TEXT NOT NULL, 
	began INTEGER NOT NULL, 
	PRIMARY KEY (scope)
)
 STRICT

;
INSERT INTO "scope_look" VALUES('gcp/proj/us-central1',1772636400000000);
CREATE TABLE use_step (
	seq INTEGER NOT NULL, 
	scope TEXT NOT NULL, 
	reservation_id TEXT NOT NULL, 
	at INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(seq) REFERENCES entry (seq)
)
 STRICT

;
INSERT INTO "use_step" VALUES(3,'gcp/proj/us-central1','res-1',1772632860000000,'{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"at":"2026-03-04T14:01:00Z","used":0}');
INSERT INTO "use_step" VALUES(4,'gcp/proj/us-central1','res-1',1772636400000000,'{"reservation_id":"res-1","scope":{"provider":"gcp","account":"proj","region":"us-central1"},"at":"2026-03-04T15:00:00Z","used":1}');
CREATE TABLE watched (
	scope TEXT NOT NULL, 
	id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (scope, id)
)
 STRICT

;
CREATE INDEX entry_by_moves ON entry (moves, seq);
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE INDEX intent_by_reservation ON intent (scope, reservation_id);
CREATE INDEX intent_by_status ON intent (status, ended);
CREATE INDEX use_step_by_reservation ON use_step (scope, reservation_id, at);
COMMIT;
