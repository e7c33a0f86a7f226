-- Evidence is stored; every lifecycle is derived from it. `precedent` and `transition` can be made again at any time.
-- A simulation has a method and a seed and counts time in tasks; a log has subjects and counts it in microseconds
-- since 1970 UTC. Both share one shape: method is '' and seed 0 in a log, subject is '' in a simulation.

CREATE TABLE run (
    run_id VARCHAR PRIMARY KEY,
    kind VARCHAR NOT NULL CHECK (kind IN ('simulation', 'log')),
    stream VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    program VARCHAR NOT NULL,
    spec VARCHAR NOT NULL,
    thresholds VARCHAR NOT NULL,
    source VARCHAR,
    counts VARCHAR NOT NULL,
    badges VARCHAR NOT NULL,
    elapsed_s DOUBLE NOT NULL
);

CREATE TABLE phase (
    run_id VARCHAR NOT NULL,
    phase VARCHAR NOT NULL,
    start_at BIGINT NOT NULL,
    end_at BIGINT NOT NULL
);

CREATE TABLE episode (
    run_id VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seed INTEGER NOT NULL,
    t INTEGER NOT NULL,
    phase VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    success BOOLEAN NOT NULL,
    followed VARCHAR,
    retrieved VARCHAR,
    exposed BOOLEAN,
    size INTEGER NOT NULL
);

CREATE TABLE truth (
    run_id VARCHAR NOT NULL,
    seed INTEGER NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    start_at BIGINT NOT NULL,
    end_at BIGINT NOT NULL
);

CREATE TABLE evidence (
    run_id VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seed INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    occurred BIGINT NOT NULL,
    arrived BIGINT NOT NULL,
    subject VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    key_id VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    value_id VARCHAR NOT NULL,
    supports BOOLEAN NOT NULL,
    text VARCHAR,
    phase VARCHAR,
    actor VARCHAR,
    source_ref VARCHAR,
    source_row BIGINT,
    admitted BOOLEAN
);

CREATE TABLE trial (
    run_id VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seed INTEGER NOT NULL,
    t INTEGER NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    number INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    success BOOLEAN NOT NULL
);

CREATE TABLE precedent (
    run_id VARCHAR NOT NULL,
    precedent_id VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seed INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    key_id VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    value_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL CHECK (state IN ('candidate', 'hypothesis', 'active', 'revoked')),
    deprecated BOOLEAN NOT NULL,
    support BIGINT NOT NULL,
    conflict BIGINT NOT NULL,
    trial_support BIGINT NOT NULL,
    trial_conflict BIGINT NOT NULL,
    posterior DOUBLE NOT NULL,
    rule VARCHAR NOT NULL,
    lives BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    revoked_at BIGINT,
    PRIMARY KEY (run_id, precedent_id)
);

CREATE TABLE transition (
    run_id VARCHAR NOT NULL,
    transition_id VARCHAR NOT NULL,
    precedent_id VARCHAR NOT NULL,
    number BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    occurred BIGINT NOT NULL,
    from_state VARCHAR NOT NULL,
    to_state VARCHAR NOT NULL,
    rule VARCHAR NOT NULL,
    life BIGINT NOT NULL,
    support BIGINT NOT NULL,
    conflict BIGINT NOT NULL,
    recent_window VARCHAR NOT NULL,
    trial_support BIGINT NOT NULL,
    trial_conflict BIGINT NOT NULL,
    posterior DOUBLE NOT NULL
);

CREATE TABLE question (
    run_id VARCHAR NOT NULL,
    seed INTEGER NOT NULL,
    t INTEGER NOT NULL,
    question INTEGER NOT NULL,
    text VARCHAR NOT NULL,
    gold VARCHAR NOT NULL
);

CREATE TABLE attribution (
    run_id VARCHAR NOT NULL,
    method VARCHAR NOT NULL,
    seed INTEGER NOT NULL,
    question INTEGER NOT NULL,
    attribution VARCHAR NOT NULL
);

CREATE TABLE import_issue (
    run_id VARCHAR NOT NULL,
    source_row BIGINT NOT NULL,
    reason VARCHAR NOT NULL,
    raw VARCHAR NOT NULL
);
