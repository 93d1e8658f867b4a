BEGIN TRANSACTION;
CREATE TABLE accounts (
	name VARCHAR NOT NULL, 
	dataset VARCHAR NOT NULL, 
	unit VARCHAR NOT NULL, 
	adjacency VARCHAR NOT NULL, 
	epsilon_cap VARCHAR NOT NULL, 
	delta_cap VARCHAR NOT NULL, 
	note VARCHAR NOT NULL, 
	created VARCHAR NOT NULL, 
	PRIMARY KEY (name), 
	UNIQUE (dataset, unit, adjacency)
);
INSERT INTO "accounts" VALUES('clinic','visits','record','add_or_remove_one','1.0','0.00001','','2026-11-21T01:28:52.468097+00:00');
CREATE TABLE entries (
	seq INTEGER NOT NULL, 
	account VARCHAR NOT NULL, 
	charge VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	payload VARCHAR NOT NULL, 
	time VARCHAR NOT NULL, 
	previous_hash VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (charge, kind, attempt), 
	FOREIGN KEY(account) REFERENCES accounts (name), 
	UNIQUE (previous_hash)
);
INSERT INTO "entries" VALUES(1,'clinic','clinic','open',1,'{"cap":{"adjacency":"add_or_remove_one","delta":1e-05,"epsilon":1.0,"unit":{"max_rows":1,"user":null}},"dataset":"visits","note":""}','2026-11-21T01:28:52.468097+00:00','0000000000000000000000000000000000000000000000000000000000000000','cd026d5f644960773b355939fedd04f3873b9141b5bcb2513b5460d074a224c4');
INSERT INTO "entries" VALUES(2,'clinic','77a7d9e4c38d422022850e575f30508632aaa27a2f425bcbc2cf4485c6428f89','reserve',1,'{"account":"clinic","budget":{"adjacency":"add_or_remove_one","delta":1e-05,"epsilon":0.3,"unit":{"max_rows":1,"user":null}},"dataset":"visits","event":{"kind":"gaussian","mechanism":"","noise_multiplier":11.238044576873286},"mechanism":"embedding","plan_hash":"plan","run":"run-0","schema_hash":"schema"}','2026-11-21T01:28:52.911641+00:00','cd026d5f644960773b355939fedd04f3873b9141b5bcb2513b5460d074a224c4','4c3249191d4336edf2a88c60c3c4044a7fbaad5ad51cb86a9a2d190883da46f4');
INSERT INTO "entries" VALUES(3,'clinic','77a7d9e4c38d422022850e575f30508632aaa27a2f425bcbc2cf4485c6428f89','draw',1,'{}','2026-11-21T01:28:52.947076+00:00','4c3249191d4336edf2a88c60c3c4044a7fbaad5ad51cb86a9a2d190883da46f4','1d86bd495b3bc3460cbbf62c5d7f4da6c287e52ce06471097610335253ea65b9');
INSERT INTO "entries" VALUES(4,'clinic','77a7d9e4c38d422022850e575f30508632aaa27a2f425bcbc2cf4485c6428f89','seal',1,'{"artifact_hash":"abababababababababababababababababababababababababababababababab"}','2026-11-21T01:28:52.975049+00:00','1d86bd495b3bc3460cbbf62c5d7f4da6c287e52ce06471097610335253ea65b9','d895b0222f2146f584f51bc6286fcf1f3fb16ecebf357f355844280aeed98c92');
INSERT INTO "entries" VALUES(5,'clinic','77a7d9e4c38d422022850e575f30508632aaa27a2f425bcbc2cf4485c6428f89','commit',1,'{}','2026-11-21T01:28:53.002977+00:00','d895b0222f2146f584f51bc6286fcf1f3fb16ecebf357f355844280aeed98c92','aac5834e33e444b86a46e5f3c2b9cece12798deaa6e06a5125da6d90637c7508');
INSERT INTO "entries" VALUES(6,'clinic','423bea62e6d0bacab9ef92d24b4a2395baabdca56b19060d9d59758c9f2951e7','reserve',1,'{"account":"clinic","budget":{"adjacency":"add_or_remove_one","delta":1e-05,"epsilon":0.3,"unit":{"max_rows":1,"user":null}},"dataset":"visits","event":{"kind":"gaussian","mechanism":"","noise_multiplier":11.238044576873286},"mechanism":"embedding","plan_hash":"plan","run":"run-1","schema_hash":"schema"}','2026-11-21T01:28:53.028227+00:00','aac5834e33e444b86a46e5f3c2b9cece12798deaa6e06a5125da6d90637c7508','8166bceefea9f1a217a87611abab4f65177ea6b663f6a5c59e5f25b0d9e5adfa');
INSERT INTO "entries" VALUES(7,'clinic','423bea62e6d0bacab9ef92d24b4a2395baabdca56b19060d9d59758c9f2951e7','void',1,'{"reason":"a wrong plan"}','2026-11-21T01:28:53.055021+00:00','8166bceefea9f1a217a87611abab4f65177ea6b663f6a5c59e5f25b0d9e5adfa','fb087257c0ba4b28040724cf5f4e1a119f9fde7259850bd83f701d6a828bb315');
INSERT INTO "entries" VALUES(8,'clinic','a253cbc0bfa31a74117cb1f5d83ac18917d91cf19ff0699d5b29befd42870766','reserve',1,'{"account":"clinic","budget":{"adjacency":"add_or_remove_one","delta":1e-05,"epsilon":0.3,"unit":{"max_rows":1,"user":null}},"dataset":"visits","event":{"kind":"gaussian","mechanism":"","noise_multiplier":11.238044576873286},"mechanism":"embedding","plan_hash":"plan","run":"run-2","schema_hash":"schema"}','2026-11-21T01:28:53.084127+00:00','fb087257c0ba4b28040724cf5f4e1a119f9fde7259850bd83f701d6a828bb315','0b543ce4d9d1caa222d105f64b011ab414ee589447e40f1742b8e9a48f3663f9');
COMMIT;
