"""The audit trail in PostgreSQL: which tables are audited, and the functions that write and protect its lines.

The functions belong to the owner of the tables and run with the owner's rights. So the roles of web server and
workers need no right to write lines, and have none to change them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Audited:
    """How one table is audited.

    name: the column that people call a row by. quiet: columns whose change is no line. hidden: shown as "hidden".
    digested: shown as a digest even where short. is_always: without a known actor too, as by `psql`. Other tables are
    also written by workers and the scheduler, on their own, which leaves no line. events: what fires the trigger.
    """

    kind: str
    name: str = ""
    quiet: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    digested: tuple[str, ...] = ()
    is_always: bool = False
    events: str = "INSERT OR UPDATE OR DELETE"


AUDITED = {
    "auth_user": Audited("person", "username", hidden=("password",), is_always=True),
    "auth_user_groups": Audited("person", is_always=True),
    "auth_user_user_permissions": Audited("person", is_always=True),
    "django_session": Audited("session", events="DELETE"),
    "runs_token": Audited("token", "name", quiet=("last_used_at",), hidden=("secret_digest",), is_always=True),
    "runs_policy": Audited("policy", "slug", is_always=True),
    "runs_signoff": Audited("sign-off", is_always=True),
    "runs_anchorset": Audited("anchor set", digested=("anchors",)),
    "runs_baseline": Audited("baseline"),
    "runs_comment": Audited("comment", digested=("text",)),
    "runs_deletion": Audited("deletion", "case_id"),
    "runs_endpoint": Audited("endpoint", "slug", quiet=("next_call_at",)),
    "runs_experiment": Audited("experiment"),
    "runs_follow": Audited("follow", "name"),
    "runs_forcedscoring": Audited("forced scoring"),
    "runs_import": Audited("import"),
    "runs_importreading": Audited("import reading", quiet=("beat_at",), digested=("options",)),
    "runs_judging": Audited("judging"),
    "runs_label": Audited("label"),
    "runs_outboxmessage": Audited("message", "event", digested=("payload",)),
    "runs_probe": Audited("probe", digested=("answers", "finding")),
    "runs_profile": Audited("profile", "slug"),
    "runs_release": Audited("release"),
    "runs_repeat": Audited("repeat", quiet=("cases",)),
    "runs_repeatscore": Audited("score", quiet=("scores", "reasons")),
    "runs_replay": Audited("replay", digested=("body", "results")),
    "runs_retentionrule": Audited("retention rule"),
    "runs_rolloutseries": Audited("rollout series", "name"),
    "runs_rolloutstep": Audited("rollout step", digested=("figures",)),
    "runs_run": Audited("run"),
    "runs_samemodel": Audited("model name", "name"),
    "runs_schedule": Audited("schedule", "slug"),
    "runs_scorer": Audited("scorer"),
    "runs_scoring": Audited("scoring"),
    "runs_settling": Audited("settling"),
    "runs_suite": Audited("suite", "slug"),
    "runs_suiteversion": Audited("suite version", "title"),
    "runs_tourend": Audited("end of the tour"),
    "runs_trial": Audited("trial", digested=("case", "answer")),
    "runs_upload": Audited("upload", "slug"),
    "runs_webhook": Audited("webhook", hidden=("secret", "url")),
}
# Keeps two commits that number their lines apart. Taken last in a transaction, so that it can wait for nothing else.
CHAIN_LOCK = 0x61756469
LEAST_DAYS = 90
EVENTS = ("refused", "sign_in_failed", "link_made")  # acts of lines that no trigger of a table writes

FUNCTIONS = f"""
CREATE FUNCTION runs_audit_shown(value jsonb, is_hidden boolean, is_digested boolean) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
    SELECT CASE
        WHEN value #>> '{{}}' IS NULL THEN NULL
        WHEN is_hidden THEN 'hidden'
        WHEN is_digested OR length(value #>> '{{}}') > 200 THEN
            'sha256:' || left(encode(sha256(convert_to(value #>> '{{}}', 'UTF8')), 'hex'), 16)
            || ' (' || length(value #>> '{{}}') || ' characters)'
        ELSE value #>> '{{}}'
    END
$$;

CREATE FUNCTION runs_audit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    before jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) ELSE '{{}}' END;
    after jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) ELSE '{{}}' END;
    row_ jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) ELSE to_jsonb(OLD) END;
    act text := CASE TG_OP WHEN 'INSERT' THEN 'created' WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END;
    subject text := coalesce(row_->>'id', row_->>'user_id');
    name text := row_->>TG_ARGV[1];
    quiet text[] := TG_ARGV[2]::text[];
    hidden text[] := TG_ARGV[3]::text[];
    digested text[] := TG_ARGV[4]::text[];
    changes jsonb;
BEGIN
    IF TG_TABLE_NAME = 'django_session' THEN
        before := '{{}}';
        subject := left(encode(sha256(convert_to(OLD.session_key, 'UTF8')), 'hex'), 16);
    ELSIF TG_TABLE_NAME = 'auth_user_groups' THEN
        act := 'changed';
        subject := row_->>'user_id';
        name := (SELECT username FROM auth_user WHERE id = subject::int);
        before := CASE WHEN TG_OP = 'DELETE' THEN
            jsonb_build_object('role', (SELECT g.name FROM auth_group g WHERE g.id = (row_->>'group_id')::int)) ELSE '{{}}' END;
        after := CASE WHEN TG_OP = 'INSERT' THEN
            jsonb_build_object('role', (SELECT g.name FROM auth_group g WHERE g.id = (row_->>'group_id')::int)) ELSE '{{}}' END;
    END IF;
    SELECT coalesce(jsonb_object_agg(key, jsonb_build_array(
        runs_audit_shown(b.value, key = ANY(hidden), key = ANY(digested)),
        runs_audit_shown(a.value, key = ANY(hidden), key = ANY(digested)))), '{{}}')
    INTO changes
    FROM jsonb_each(before) b FULL JOIN jsonb_each(after) a USING (key)
    WHERE key <> ALL(quiet) AND key <> 'id' AND b.value IS DISTINCT FROM a.value
        AND NOT (coalesce(b.value, 'null') IN ('null', '""', '[]', '{{}}') AND coalesce(a.value, 'null') IN ('null', '""', '[]', '{{}}'));
    IF TG_OP = 'UPDATE' AND changes = '{{}}' THEN
        RETURN NULL;
    END IF;
    IF TG_TABLE_NAME = 'auth_user' AND TG_OP = 'UPDATE' AND changes - 'last_login' = '{{}}' THEN
        act := 'signed_in';
    END IF;
    INSERT INTO runs_auditline (
        actor, person, credential, address, via, act, kind, subject, name, changes, request_id, role, previous, digest)
    VALUES (
        '', '', '', '', '', act, TG_ARGV[0], coalesce(subject, ''), left(coalesce(name, ''), 300), changes, '', '', '',
        '');
    RETURN NULL;
END
$$;

CREATE FUNCTION runs_audit_digest(line runs_auditline) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog AS $$
    SELECT encode(sha256(convert_to(jsonb_build_array(
        line.previous, line.number, to_char(line.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), line.actor,
        line.person, line.credential, line.address, line.via, line.act, line.kind, line.subject, line.name,
        line.changes, line.request_id, line.role)::text, 'UTF8')), 'hex')
$$;

CREATE FUNCTION runs_audit_chain() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    last runs_auditline;
    line runs_auditline;
BEGIN
    PERFORM pg_advisory_xact_lock({CHAIN_LOCK});
    SELECT * INTO last FROM runs_auditline WHERE number IS NOT NULL ORDER BY number DESC LIMIT 1;
    SELECT * INTO line FROM runs_auditline WHERE id = NEW.id;
    line.number := coalesce(last.number, 0) + 1;
    line.previous := coalesce(last.digest, '');
    UPDATE runs_auditline SET number = line.number, previous = line.previous,
        digest = runs_audit_digest(line) WHERE id = NEW.id;
    RETURN NULL;
END
$$;

CREATE FUNCTION runs_audit_refuse() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    table_owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID);
    context jsonb := '{{}}';
BEGIN
    IF TG_OP = 'INSERT' THEN  -- the database chooses a line's time and place
        IF current_user <> table_owner AND NEW.act <> ALL ('{{{",".join(EVENTS)}}}') THEN
            RAISE EXCEPTION 'Only triggers write lines of %; an account adds security events.', NEW.act
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF NEW.actor = '' THEN
            -- An account that may add no line, as a worker's, may name no actor.
            IF has_table_privilege(session_user, TG_RELID, 'INSERT') THEN
                context := coalesce(nullif(current_setting('evalboard.actor', true), ''), '{{}}')::jsonb;
            END IF;
            NEW.actor := coalesce(context->>'actor', 'database');
            NEW.person := coalesce(context->>'person', '');
            NEW.credential := coalesce(context->>'credential', '');
            NEW.address := coalesce(context->>'address', '');
            NEW.via := coalesce(context->>'via', '');
            NEW.request_id := coalesce(context->>'request_id', '');
            IF NEW.act = 'signed_in' AND NEW.actor = 'anonymous' THEN
                NEW.actor := 'person';
                NEW.person := NEW.name;
            END IF;
        END IF;
        NEW.id := nextval('public.runs_auditline_id_seq');
        NEW.at := clock_timestamp();
        NEW.role := session_user;
        NEW.number := NULL;
        NEW.previous := '';
        NEW.digest := '';
        RETURN NEW;
    ELSIF TG_OP = 'UPDATE' AND OLD.digest = '' AND to_jsonb(NEW) - ARRAY['number', 'previous', 'digest']
          = to_jsonb(OLD) - ARRAY['number', 'previous', 'digest'] THEN
        RETURN NEW;
    ELSIF TG_OP = 'DELETE' AND current_setting('evalboard.audit_cut', true) = 'on'
        AND OLD.at < now() - interval '{LEAST_DAYS} days' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The audit trail is append-only; % is refused.', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;

CREATE FUNCTION runs_audit_cut(days integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    kept bigint;
    cut runs_auditline;
BEGIN
    IF days < {LEAST_DAYS} THEN
        RAISE EXCEPTION 'The audit trail keeps at least {LEAST_DAYS} days; % is refused.', days
            USING ERRCODE = 'restrict_violation';
    END IF;
    PERFORM pg_advisory_xact_lock({CHAIN_LOCK});
    SELECT min(number) INTO kept FROM runs_auditline WHERE at >= now() - make_interval(days => days);
    SELECT * INTO cut FROM runs_auditline
        WHERE number < coalesce(kept, (SELECT max(number) FROM runs_auditline)) ORDER BY number DESC LIMIT 1;
    IF cut.number IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM set_config('evalboard.audit_cut', 'on', true);
    DELETE FROM runs_auditline WHERE number <= cut.number;
    DELETE FROM runs_auditseal WHERE number <= cut.number;
    PERFORM set_config('evalboard.audit_cut', '', true);
    INSERT INTO runs_auditline (actor, person, credential, address, via, act, kind, subject, name, changes, request_id,
        role, previous, digest)
    VALUES ('database', '', '', '', 'retention', 'cut', 'audit trail', cut.number::text, '',
        jsonb_build_object('digest', jsonb_build_array(cut.digest, NULL)), '', '', '', '');
    RETURN cut.number;
END
$$;

CREATE CONSTRAINT TRIGGER runs_audit_chain AFTER INSERT ON runs_auditline
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION runs_audit_chain();
CREATE TRIGGER runs_audit_append_only BEFORE INSERT OR UPDATE OR DELETE ON runs_auditline
    FOR EACH ROW EXECUTE FUNCTION runs_audit_refuse();
CREATE TRIGGER runs_audit_no_truncate BEFORE TRUNCATE ON runs_auditline
    FOR EACH STATEMENT EXECUTE FUNCTION runs_audit_refuse();
"""


def write_trigger(table: str, audited: Audited) -> str:
    """Return the statement that audits a table."""
    lists = ("{" + ",".join(columns) + "}" for columns in (audited.quiet, audited.hidden, audited.digested))
    arguments = ", ".join(f"'{argument}'" for argument in (audited.kind, audited.name, *lists))
    known = "" if audited.is_always else "WHEN (current_setting('evalboard.actor', true) <> '') "
    return (
        f"CREATE TRIGGER runs_audit AFTER {audited.events} ON {table}"
        f" FOR EACH ROW {known}EXECUTE FUNCTION runs_audit({arguments});"
    )


CREATE = FUNCTIONS + "\n".join(write_trigger(table, audited) for table, audited in AUDITED.items())
DROP = "; ".join(
    f"DROP FUNCTION {name} CASCADE"
    for name in (
        *("runs_audit_shown(jsonb, boolean, boolean)", "runs_audit()", "runs_audit_digest(runs_auditline)"),
        *("runs_audit_chain()", "runs_audit_refuse()", "runs_audit_cut(integer)"),
    )
)
