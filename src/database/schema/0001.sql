-- Version 1 of the shared store. Each function that the program calls has the form
-- phalanx.NAME(args jsonb) returns json, and each call is one statement and one transaction.
--
-- Refusals have SQLSTATEs of their own:
--   PX001  the calling run was declared lost     PX002  the lease has another number
--   PX003  the team does not exist
--
-- Calls are repeated after a lost connection, possibly while the first attempt still runs. So each
-- function that changes something has no further effect if it is called again with the same ids.
--
-- Locks are acquired in this order: calls, write, task-list, member, rows, files, log.

-- The first key of the advisory locks of a purpose. The second one is the id of a team, or a hash.
create function phalanx.key(purpose text) returns integer
language sql immutable parallel safe as $$
  select 1885891584 + case purpose
    when 'calls' then 1      -- shared by all changes of a team; exclusive for those that end others
    when 'write' then 2      -- attempts of the same write
    when 'task-list' then 3  -- shared by claims; exclusive for acquiring the lock of that name
    when 'member' then 4     -- claims of one member
    when 'files' then 5      -- claims of tasks with file patterns
    when 'log' then 6        -- appends to the logs of a team
    when 'lease' then 7      -- held by the session of the lead
  end
$$;

create sequence phalanx.versions;

create table phalanx.team (
  id integer generated always as identity primary key,
  name text not null unique,
  channel text not null,
  -- The largest id of a task that was ever assigned.
  mark bigint not null default 0,
  -- The number of the latest lease of a lead.
  lease bigint not null default 0
);

-- Runs that were declared lost.
create table phalanx.fenced (
  team integer not null,
  incarnation text not null,
  primary key (team, incarnation)
);

-- Replies to recent writes, for repeated calls.
create table phalanx.done (
  write text primary key,
  reply text not null,
  at timestamptz not null default clock_timestamp()
);
create index done_at on phalanx.done (at);

create table phalanx.document (
  team integer not null,
  kind text not null,
  key text not null,
  version bigint not null,
  body text not null,
  -- Of the team file: the folded names on the roster.
  names text[],
  changed_at timestamptz not null default clock_timestamp(),
  primary key (team, kind, key)
);

create table phalanx.mailbox (
  team integer not null,
  owner text not null,
  primary key (team, owner)
);

create table phalanx.mail (
  seq bigint generated always as identity,
  team integer not null,
  owner text not null,
  msg_id text not null,
  -- Null once the message was removed. The row stays, so that it is never stored again.
  body text,
  write text not null,
  delivered_at timestamptz,
  -- The write that delivered it.
  delivered_by text,
  -- The id first: without statistics, the planner would read a whole mailbox to find one message.
  primary key (msg_id, owner, team)
);
create index mail_unread on phalanx.mail (team, owner, seq)
  where body is not null and delivered_at is null;
create index mail_read on phalanx.mail (team, owner, seq)
  where body is not null and delivered_at is not null;

create table phalanx.task (
  team integer not null,
  id bigint not null,
  version bigint not null,
  state text not null,
  owner text,
  priority bigint not null,
  role text,
  internal boolean not null,
  has_command boolean not null,
  files text[] not null,
  blocked_by bigint[] not null,
  body text not null,
  -- A claim since the body was written: {by, at, event}.
  claim json,
  -- The part of the journal line of a claim that depends on the task: fields of a JSON object.
  claim_line text not null,
  changed_at timestamptz not null default clock_timestamp(),
  -- The id first, as for mail.
  primary key (id, team)
);
create index task_team on phalanx.task (team, id);
create index task_free on phalanx.task (team, has_command, priority desc, id)
  where state = 'pending' and not internal and owner is null;
create index task_assigned on phalanx.task (team, owner, has_command, priority desc, id)
  where state = 'pending' and not internal and owner is not null;
create index task_running on phalanx.task (team, owner)
  where state in ('in_progress', 'stale') and not internal;
create index task_files on phalanx.task (team)
  where state in ('in_progress', 'stale', 'in_review') and cardinality(files) > 0;

create table phalanx.deleted_task (
  team integer not null,
  id bigint not null,
  primary key (team, id)
);

create table phalanx.log (
  -- Assigned under the lock "log", so a line that is committed later has a larger one.
  seq bigint generated always as identity,
  team integer not null,
  log text not null,
  id text not null,
  at bigint not null,
  task bigint,
  body text not null,
  primary key (team, log, id)
);
create unique index log_seq on phalanx.log (team, log, seq);
create index log_at on phalanx.log (team, log, at);
create index log_task on phalanx.log (team, log, task, seq) where task is not null;

create table phalanx.lock (
  team integer not null,
  name text not null,
  holder uuid not null,
  until timestamptz not null,
  primary key (team, name)
);

-- Helpers

create function phalanx.no_team(args jsonb) returns void language plpgsql as $$
begin
  raise exception using errcode = 'PX003', message = coalesce(args->>'team', '');
end $$;

create function phalanx.team_of(args jsonb) returns phalanx.team language plpgsql stable as $$
declare
  it phalanx.team;
begin
  select * into it from phalanx.team t where t.name = args->>'team';
  if not found then
    perform phalanx.no_team(args);
  end if;
  return it;
end $$;

-- Returns the team, and refuses the calls of lost runs and former leads. The lock makes `fence`,
-- `take_lease` and `delete_team` wait for the calls that were admitted before.
create function phalanx.admit(args jsonb, alone boolean default false) returns phalanx.team
language plpgsql as $$
declare
  it phalanx.team := phalanx.team_of(args);
  run text := args #>> '{actor,incarnation}';
  number bigint := (args #>> '{actor,fence}')::bigint;
  team_id integer := it.id;
begin
  if alone then
    perform pg_advisory_xact_lock(phalanx.key('calls'), team_id);
  else
    perform pg_advisory_xact_lock_shared(phalanx.key('calls'), team_id);
  end if;
  -- Read again: this statement sees what was committed before the lock was acquired.
  select * into it from phalanx.team t where t.id = team_id;
  if not found then
    perform phalanx.no_team(args);
  end if;
  if number <> it.lease then
    raise exception using errcode = 'PX002', message = it.name;
  end if;
  if run is not null and exists (
    select 1 from phalanx.fenced f where f.team = team_id and f.incarnation = run
  ) then
    raise exception using errcode = 'PX001', message = it.name;
  end if;
  return it;
end $$;

create function phalanx.announce(channel text, change text) returns void
language plpgsql as $$
begin
  -- The limit is 8000 bytes. `e` means that everything may have changed.
  perform pg_notify(channel, case when octet_length(change) < 7900 then change else 'e' end);
end $$;

-- Returns the reply to an earlier attempt of a write, or null. Waits for an attempt that still runs.
create function phalanx.replay(key text) returns text language plpgsql as $$
declare
  earlier text;
begin
  perform pg_advisory_xact_lock(phalanx.key('write'), hashtext(key));
  select d.reply into earlier from phalanx.done d where d.write = key;
  return earlier;
end $$;

-- Keeps the reply to a write, for longer than any call is repeated.
create function phalanx.record(key text, reply json) returns json language plpgsql as $$
begin
  insert into phalanx.done (write, reply) values (key, reply::text);
  if random() < 0.01 then
    delete from phalanx.done d where d.write in (
      select o.write from phalanx.done o where o.at < clock_timestamp() - interval '10 minutes'
      order by o.at limit 1000 for update skip locked
    );
  end if;
  return reply;
end $$;

create function phalanx.age(since timestamptz) returns bigint language sql volatile as $$
  select greatest(0, extract(epoch from clock_timestamp() - since) * 1000)::bigint
$$;

create function phalanx.append_lines(it phalanx.team, kind text, entries jsonb) returns void
language plpgsql as $$
begin
  if coalesce(jsonb_array_length(entries), 0) = 0 then
    return;
  end if;
  perform pg_advisory_xact_lock(phalanx.key('log'), it.id);
  insert into phalanx.log (team, log, id, at, task, body)
    select it.id, kind, e.value->>'id', (e.value->>'at')::bigint, (e.value->>'task')::bigint,
           e.value->>'body'
    from jsonb_array_elements(entries) with ordinality e (value, place)
    order by e.place
    on conflict (team, log, id) do nothing;
  if found then
    perform phalanx.announce(it.channel, 'j');
  end if;
end $$;

create function phalanx.put_first(it phalanx.team, d jsonb) returns bigint
language plpgsql as $$
declare
  new_version bigint := nextval('phalanx.versions');
begin
  insert into phalanx.document (team, kind, key, version, body, names)
    values (it.id, d->>'kind', d->>'key', new_version, d->>'body', phalanx.texts(d->'names'))
    on conflict (team, kind, key) do nothing;
  return case when found then new_version end;
end $$;

create function phalanx.texts(list jsonb) returns text[] language sql immutable as $$
  select case when jsonb_typeof(list) = 'array'
    then array(select jsonb_array_elements_text(list)) end
$$;

create function phalanx.numbers(list jsonb) returns bigint[] language sql immutable as $$
  select array(select n::bigint from jsonb_array_elements_text(list) n)
$$;

-- Teams

create function phalanx.teams(args jsonb) returns json language sql stable as $$
  select coalesce(json_agg(t.name order by t.name collate "C"), '[]') from phalanx.team t
$$;

create function phalanx.create_team(args jsonb) returns json language plpgsql as $$
declare
  earlier text := phalanx.replay(args->>'write');
  it phalanx.team;
begin
  if earlier is not null then
    return earlier::json;
  end if;
  insert into phalanx.team (name, channel)
    values (args->>'team', 'phalanx_'
      || substr(encode(sha256(convert_to(args->>'team', 'UTF8')), 'hex'), 1, 32))
    on conflict (name) do nothing
    returning * into it;
  if not found then
    return 'false';
  end if;
  perform phalanx.put_first(it, d) from jsonb_array_elements(args->'documents') d;
  perform phalanx.announce(it.channel, 'e');
  return phalanx.record(args->>'write', 'true');
end $$;

create function phalanx.delete_team(args jsonb) returns json language plpgsql as $$
declare
  earlier text := phalanx.replay(args->>'write');
  it phalanx.team;
begin
  if earlier is not null then
    return earlier::json;
  end if;
  begin
    it := phalanx.admit(args, true);
  exception when sqlstate 'PX003' then
    return 'false';
  end;
  delete from phalanx.document d where d.team = it.id;
  delete from phalanx.mailbox m where m.team = it.id;
  delete from phalanx.mail m where m.team = it.id;
  delete from phalanx.task t where t.team = it.id;
  delete from phalanx.deleted_task t where t.team = it.id;
  delete from phalanx.log l where l.team = it.id;
  delete from phalanx.lock l where l.team = it.id;
  delete from phalanx.fenced f where f.team = it.id;
  delete from phalanx.team t where t.id = it.id;
  perform phalanx.announce(it.channel, 'e');
  return phalanx.record(args->>'write', 'true');
end $$;

create function phalanx.fence(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args, true);
begin
  insert into phalanx.fenced (team, incarnation) values (it.id, args->>'incarnation')
    on conflict do nothing;
  return 'null';
end $$;

-- Documents

create function phalanx.document_json(d phalanx.document) returns json language sql volatile as $$
  select json_build_object('key', d.key, 'version', d.version, 'body', d.body,
    'age_ms', phalanx.age(d.changed_at))
$$;

create function phalanx.document(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  return coalesce((
    select phalanx.document_json(d) from phalanx.document d
    where d.team = it.id and d.kind = args->>'kind' and d.key = args->>'key'
  ), 'null');
end $$;

create function phalanx.documents(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  return coalesce((
    select json_agg(phalanx.document_json(d) order by d.key collate "C") from phalanx.document d
    where d.team = it.id and d.kind = args->>'kind'
  ), '[]');
end $$;

create function phalanx.put_document(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  earlier text := phalanx.replay(args->>'write');
  old_version bigint := (args->>'expected')::bigint;
  new_version bigint;
begin
  if earlier is not null then
    return earlier::json;
  end if;
  if old_version is null then
    new_version := phalanx.put_first(it, args);
  else
    update phalanx.document d
      set version = nextval('phalanx.versions'), body = args->>'body',
          names = phalanx.texts(args->'names'), changed_at = clock_timestamp()
      where d.team = it.id and d.kind = args->>'kind' and d.key = args->>'key'
        and d.version = old_version
      returning d.version into new_version;
  end if;
  if new_version is null then
    return 'null';
  end if;
  perform phalanx.announce(it.channel, format('d:%s:%s', args->>'kind', args->>'key'));
  return phalanx.record(args->>'write', to_json(new_version));
end $$;

-- Returns true if this call removed the document.
create function phalanx.delete_document(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  earlier text := phalanx.replay(args->>'write');
begin
  if earlier is not null then
    return earlier::json;
  end if;
  delete from phalanx.document d
    where d.team = it.id and d.kind = args->>'kind' and d.key = args->>'key'
      and d.version = (args->>'expected')::bigint;
  if not found then
    return 'false';
  end if;
  perform phalanx.announce(it.channel, format('d:%s:%s', args->>'kind', args->>'key'));
  return phalanx.record(args->>'write', 'true');
end $$;

-- Mail

create function phalanx.mail_json(m phalanx.mail) returns json language sql stable as $$
  select json_build_object('msg_id', m.msg_id, 'body', m.body,
    'delivered', m.delivered_at is not null)
$$;

create function phalanx.append_mail(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  ids text[] := array(select e->>'msg_id' from jsonb_array_elements(args->'entries') e);
  is_repeated boolean := exists (
    select 1 from phalanx.mail m
    where m.team = it.id and m.owner = args->>'owner' and m.msg_id = any (ids)
      and m.write = args->>'write');
begin
  if not is_repeated and not exists (
    select 1 from phalanx.document d
    where d.team = it.id and d.kind = 'config' and d.key = '' and args->>'name' = any (d.names)
  ) then
    return '"no_member"';
  end if;
  insert into phalanx.mailbox (team, owner) values (it.id, args->>'owner') on conflict do nothing;
  insert into phalanx.mail (team, owner, msg_id, body, write)
    select it.id, args->>'owner', e.value->>'msg_id', e.value->>'body', args->>'write'
    from jsonb_array_elements(args->'entries') with ordinality e (value, place)
    order by e.place
    on conflict (msg_id, owner, team) do nothing;
  if found then
    perform phalanx.announce(it.channel, 'm:' || (args->>'owner'));
  end if;
  perform phalanx.append_lines(it, 'journal', args->'journal');
  return json_build_object('stored', coalesce((
    select json_agg(m.msg_id order by m.seq) from phalanx.mail m
    where m.team = it.id and m.owner = args->>'owner' and m.msg_id = any (ids)
      and m.write = args->>'write'
  ), '[]'));
end $$;

create function phalanx.mailboxes(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  return coalesce((
    select json_agg(b.owner order by b.owner collate "C") from phalanx.mailbox b
    where b.team = it.id
  ), '[]');
end $$;

create function phalanx.mail(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
  is_read_wanted boolean := args->>'scope' <> 'undelivered';
  newest bigint := case when args->>'scope' = 'recent' then 32 end;
begin
  return coalesce((
    select json_agg(x.shown order by x.seq) from (
      select m.seq, phalanx.mail_json(m) as shown from phalanx.mail m
      where m.team = it.id and m.owner = args->>'owner' and m.body is not null
        and m.delivered_at is null
      union all
      (select m.seq, phalanx.mail_json(m) from phalanx.mail m
      where is_read_wanted and m.team = it.id and m.owner = args->>'owner'
        and m.body is not null and m.delivered_at is not null
      order by m.seq desc limit newest)
    ) x
  ), '[]');
end $$;

create function phalanx.find_mail(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  return coalesce((
    select phalanx.mail_json(m) from phalanx.mail m
    where m.team = it.id and m.owner = args->>'owner' and m.msg_id = args->>'msg_id'
      and m.body is not null
  ), 'null');
end $$;

create function phalanx.deliver_mail(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  ids text[] := phalanx.texts(args->'ids');
  is_removed boolean := (args->>'remove')::boolean;
begin
  -- In one order, so that two readers do not deadlock.
  perform 1 from phalanx.mail m
    where m.team = it.id and m.owner = args->>'owner' and m.msg_id = any (ids)
    order by m.seq for update;
  update phalanx.mail m
    set delivered_at = coalesce(m.delivered_at, clock_timestamp()),
        delivered_by = coalesce(m.delivered_by, args->>'write'),
        body = case when is_removed then null else m.body end
    where m.team = it.id and m.owner = args->>'owner' and m.msg_id = any (ids)
      and m.body is not null and (is_removed or m.delivered_at is null);
  if found then
    perform phalanx.announce(it.channel, 'm:' || (args->>'owner'));
  end if;
  return coalesce((
    select json_agg(i.id order by i.place) from unnest(ids) with ordinality i (id, place)
    join phalanx.mail m on m.team = it.id and m.owner = args->>'owner' and m.msg_id = i.id
    where m.delivered_by = args->>'write'
  ), '[]');
end $$;

create function phalanx.create_mailbox(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  earlier text := phalanx.replay(args->>'write');
begin
  if earlier is not null then
    return earlier::json;
  end if;
  insert into phalanx.mailbox (team, owner) values (it.id, args->>'owner') on conflict do nothing;
  if not found then
    return 'false';
  end if;
  perform phalanx.announce(it.channel, 'm:' || (args->>'owner'));
  return phalanx.record(args->>'write', 'true');
end $$;

create function phalanx.delete_mailbox(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  earlier text := phalanx.replay(args->>'write');
begin
  if earlier is not null then
    return earlier::json;
  end if;
  delete from phalanx.mailbox m where m.team = it.id and m.owner = args->>'owner';
  delete from phalanx.mail m where m.team = it.id and m.owner = args->>'owner';
  perform phalanx.announce(it.channel, 'm:' || (args->>'owner'));
  return phalanx.record(args->>'write', 'null');
end $$;

-- Tasks

create function phalanx.task_json(t phalanx.task) returns json language sql volatile as $$
  select json_build_object('id', t.id, 'version', t.version, 'body', t.body, 'claim', t.claim,
    'age_ms', phalanx.age(t.changed_at))
$$;

create function phalanx.tasks(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
  named bigint[] := phalanx.numbers(args #> '{scope,with_blockers}');
  found_tasks json;
begin
  if jsonb_typeof(args->'scope') = 'object' then
    select json_agg(phalanx.task_json(t) order by t.id) into found_tasks
      from phalanx.task t
      where t.team = it.id and t.id in (
        select unnest(named)
        union
        select unnest(n.blocked_by) from phalanx.task n where n.team = it.id and n.id = any (named)
      );
  else
    select json_agg(phalanx.task_json(t) order by t.id) into found_tasks
      from phalanx.task t
      where t.team = it.id
        and (args->>'scope' = 'all' or t.state not in ('completed', 'cancelled'));
  end if;
  return json_build_object(
    'tasks', coalesce(found_tasks, '[]'),
    'deleted', coalesce(
      (select json_agg(d.id order by d.id) from phalanx.deleted_task d where d.team = it.id),
      '[]'),
    'mark', it.mark);
end $$;

create function phalanx.raise_mark(it phalanx.team, wanted bigint) returns void
language sql as $$
  update phalanx.team t set mark = wanted where t.id = it.id and t.mark < wanted
$$;

create function phalanx.put_tasks(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  earlier text := phalanx.replay(args->>'write');
  written json;
begin
  if earlier is not null then
    return earlier::json;
  end if;
  perform 1 from phalanx.task t
    where t.team = it.id
      and t.id in (select (e->>'id')::bigint from jsonb_array_elements(args->'tasks') e)
    order by t.id for update;
  if exists (
    select 1 from jsonb_array_elements(args->'tasks') e
    left join phalanx.task t on t.team = it.id and t.id = (e->>'id')::bigint
    where t.version is distinct from (e->>'expected')::bigint
  ) then
    return 'null';
  end if;
  begin
    with given as (
      select e.place, (e.value->>'id')::bigint as id, (e.value->>'expected')::bigint as expected,
        nextval('phalanx.versions') as version, e.value->>'body' as body,
        e.value->>'state' as state, e.value->>'owner' as owner,
        (e.value->>'priority')::bigint as priority, e.value->>'role' as role,
        (e.value->>'internal')::boolean as internal,
        (e.value->>'has_command')::boolean as has_command,
        phalanx.texts(e.value->'files') as files,
        phalanx.numbers(e.value->'blocked_by') as blocked_by, e.value->>'claim_line' as claim_line
      from jsonb_array_elements(args->'tasks') with ordinality e (value, place)
    ), changed as (
      update phalanx.task t
        set version = g.version, state = g.state, owner = g.owner, priority = g.priority,
            role = g.role, internal = g.internal, has_command = g.has_command,
            files = g.files, blocked_by = g.blocked_by, body = g.body, claim = null,
            claim_line = g.claim_line, changed_at = clock_timestamp()
        from given g
        where t.team = it.id and t.id = g.id and g.expected is not null
        returning 1
    ), added as (
      insert into phalanx.task (team, id, version, state, owner, priority, role, internal,
          has_command, files, blocked_by, body, claim_line)
        select it.id, g.id, g.version, g.state, g.owner, g.priority, g.role, g.internal,
          g.has_command, g.files, g.blocked_by, g.body, g.claim_line
        from given g where g.expected is null order by g.id
        returning 1
    )
    select json_agg(g.version order by g.place) into written from given g;
  exception when unique_violation then
    return 'null';
  end;
  perform phalanx.raise_mark(it, (args->>'mark')::bigint);
  if jsonb_array_length(args->'tasks') >= 1000 then
    -- Otherwise the next statements are planned for a small table until autovacuum counts the rows,
    -- and one that joins as many tasks takes minutes.
    analyze phalanx.task;
  end if;
  if written is not null then
    perform phalanx.announce(it.channel, 't');
  end if;
  return phalanx.record(args->>'write', coalesce(written, '[]'));
end $$;

-- Returns true if this call deleted the task.
create function phalanx.delete_task(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  earlier text := phalanx.replay(args->>'write');
  task_id bigint := (args->>'id')::bigint;
begin
  if earlier is not null then
    return earlier::json;
  end if;
  delete from phalanx.task t
    where t.team = it.id and t.id = task_id and t.version = (args->>'expected')::bigint;
  if not found then
    return 'false';
  end if;
  insert into phalanx.deleted_task (team, id) values (it.id, task_id) on conflict do nothing;
  perform phalanx.raise_mark(it, task_id);
  perform phalanx.announce(it.channel, 't');
  return phalanx.record(args->>'write', 'true');
end $$;

-- Claims. The rules are those of src/model/board/mod.rs.

-- Returns true if two path patterns may match the same file.
create function phalanx.meet(a text, b text) returns boolean language sql immutable as $$
  -- Compares the parts before the first wildcard.
  select case
    when x.start_a <> a and x.start_b <> b
      then starts_with(x.start_a, x.start_b) or starts_with(x.start_b, x.start_a)
    when x.start_a <> a then starts_with(b, x.start_a)
    when x.start_b <> b then starts_with(a, x.start_b)
    else a = b
  end
  from (
    select substring(a from '^[^*?[{]*') as start_a, substring(b from '^[^*?[{]*') as start_b
  ) x
$$;

-- Returns true if the files of a task may be in use by another one.
create function phalanx.overlaps(it_team integer, it_id bigint, it_files text[]) returns boolean
language sql volatile as $$
  select exists (
    select 1 from phalanx.task o
    where o.team = it_team and o.id <> it_id and o.state in ('in_progress', 'stale', 'in_review')
      and cardinality(o.files) > 0
      and exists (
        select 1 from unnest(it_files) a, unnest(o.files) b where phalanx.meet(a, b))
  )
$$;

create function phalanx.claim(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  write_key text := 'claim ' || it.id || ' ' || (args->>'event');
  earlier text := phalanx.replay(write_key);
  me text := args->>'who';
  my_role text := args->>'role';
  named bigint := (args #>> '{scope,task}')::bigint;
  for_command boolean := args->>'scope' = 'command';
  is_busy_checked boolean := (args->>'busy_check')::boolean;
  busy_with bigint;
  passed_over bigint[] := '{}';
  pick phalanx.task;
begin
  if earlier is not null then
    return earlier::json;
  end if;
  perform pg_advisory_xact_lock_shared(phalanx.key('task-list'), it.id);
  if exists (
    select 1 from phalanx.lock l
    where l.team = it.id and l.name = 'task-list' and l.until > clock_timestamp()
  ) then
    return '"locked"';
  end if;
  if is_busy_checked or (named is null and for_command) then
    perform pg_advisory_xact_lock(phalanx.key('member'), hashtext(it.id || ' ' || me));
    select min(t.id) into busy_with from phalanx.task t
      where t.team = it.id and t.owner = me and t.state in ('in_progress', 'stale')
        and not t.internal;
  end if;
  if named is not null then
    select * into pick from phalanx.task t where t.team = it.id and t.id = named for update;
    if not found or pick.state <> 'pending' or pick.owner <> me or exists (
      select 1 from unnest(pick.blocked_by) u (id)
      where (select b.state not in ('completed', 'cancelled') from phalanx.task b
        where b.team = it.id and b.id = u.id)
    ) then
      return '"nothing"';
    end if;
  end if;
  if busy_with is not null then
    if is_busy_checked then
      return json_build_object('busy', busy_with);
    end if;
    return '"nothing"';
  end if;
  if named is not null then
    if cardinality(pick.files) > 0 then
      perform pg_advisory_xact_lock(phalanx.key('files'), it.id);
      if phalanx.overlaps(it.id, pick.id, pick.files) then
        return '"nothing"';
      end if;
    end if;
  else
    loop
      -- The `or` and the scalar subquery keep the planner from joining the whole board: each
      -- blocker is one look-up by its key.
      select t.* into pick from phalanx.task t
        where t.team = it.id and t.owner = me and t.owner is not null and t.state = 'pending'
          and not t.internal and t.has_command = for_command and t.id <> all (passed_over)
          and (cardinality(t.blocked_by) = 0 or not exists (
            select 1 from unnest(t.blocked_by) u (id)
            where (select b.state not in ('completed', 'cancelled') from phalanx.task b
              where b.team = t.team and b.id = u.id)))
          and (cardinality(t.files) = 0 or not phalanx.overlaps(t.team, t.id, t.files))
        order by t.priority desc, t.id limit 1 for update skip locked;
      if not found then
        select t.* into pick from phalanx.task t
          where t.team = it.id and t.owner is null and t.state = 'pending'
            and not t.internal and t.has_command = for_command and t.id <> all (passed_over)
            and (t.role is null or t.role = my_role)
            and (cardinality(t.blocked_by) = 0 or not exists (
              select 1 from unnest(t.blocked_by) u (id)
              where (select b.state not in ('completed', 'cancelled') from phalanx.task b
                where b.team = t.team and b.id = u.id)))
            and (cardinality(t.files) = 0 or not phalanx.overlaps(t.team, t.id, t.files))
          order by t.priority desc, t.id limit 1 for update skip locked;
      end if;
      if not found then
        return '"nothing"';
      end if;
      exit when cardinality(pick.files) = 0;
      -- Checked again under the lock: another claim may have started a task with the same files.
      perform pg_advisory_xact_lock(phalanx.key('files'), it.id);
      exit when not phalanx.overlaps(it.id, pick.id, pick.files);
      passed_over := passed_over || pick.id;
    end loop;
  end if;
  update phalanx.task t
    set state = 'in_progress', owner = me, version = nextval('phalanx.versions'),
        claim = json_build_object('by', args->'by', 'at', args->'at', 'event', args->'event'),
        changed_at = clock_timestamp()
    where t.team = it.id and t.id = pick.id
    returning t.* into pick;
  perform phalanx.announce(it.channel, 'c');
  perform phalanx.append_lines(it, 'journal', jsonb_build_array(jsonb_build_object(
    'id', args->'event', 'at', args->'at', 'task', pick.id,
    'body', '{' || (args->>'line') || ',' || pick.claim_line || '}')));
  return phalanx.record(write_key, json_build_object('claimed', phalanx.task_json(pick)));
end $$;

-- Logs

create function phalanx.append_log(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
begin
  perform phalanx.append_lines(it, args->>'log', args->'entries');
  return 'null';
end $$;

create function phalanx.log(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
  scope jsonb := args->'scope';
  found_lines json;
begin
  if scope ? 'after' then
    select json_agg(json_build_object('seq', x.seq, 'body', x.body) order by x.seq)
      into found_lines
      from (
        select l.seq, l.body from phalanx.log l
        where l.team = it.id and l.log = args->>'log'
          and l.seq > (scope #>> '{after,seq}')::bigint
        order by l.seq limit (scope #>> '{after,limit}')::bigint
      ) x;
  elsif scope ? 'since' then
    select json_agg(json_build_object('seq', l.seq, 'body', l.body) order by l.seq)
      into found_lines from phalanx.log l
      where l.team = it.id and l.log = args->>'log' and l.at >= (scope->>'since')::bigint;
  elsif scope ? 'task' then
    select json_agg(json_build_object('seq', l.seq, 'body', l.body) order by l.seq)
      into found_lines from phalanx.log l
      where l.team = it.id and l.log = args->>'log' and l.task = (scope->>'task')::bigint;
  else
    select json_agg(json_build_object('seq', l.seq, 'body', l.body) order by l.seq)
      into found_lines from phalanx.log l
      where l.team = it.id and l.log = args->>'log' and l.task is not null;
  end if;
  return coalesce(found_lines, '[]');
end $$;

create function phalanx.log_end(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  return to_json(coalesce(
    (select max(l.seq) from phalanx.log l where l.team = it.id and l.log = args->>'log'), 0));
end $$;

-- Locks

create function phalanx.acquire_lock(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
  me uuid := (args->>'holder')::uuid;
begin
  if exists (
    select 1 from phalanx.lock l
    where l.team = it.id and l.name = args->>'name' and l.holder <> me
      and l.until > clock_timestamp()
  ) then
    return 'false';
  end if;
  if args->>'name' = 'task-list' then
    -- Waits for claims in flight.
    perform pg_advisory_xact_lock(phalanx.key('task-list'), it.id);
  end if;
  insert into phalanx.lock as l (team, name, holder, until)
    values (it.id, args->>'name', me, clock_timestamp() + interval '30 seconds')
    on conflict (team, name) do update set holder = me, until = excluded.until
      where l.holder = me or l.until <= clock_timestamp();
  return to_json(found);
end $$;

create function phalanx.renew_lock(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.admit(args);
begin
  update phalanx.lock l set until = clock_timestamp() + interval '30 seconds'
    where l.team = it.id and l.name = args->>'name' and l.holder = (args->>'holder')::uuid;
  return to_json(found);
end $$;

create function phalanx.release_lock(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  delete from phalanx.lock l
    where l.team = it.id and l.name = args->>'name' and l.holder = (args->>'holder')::uuid;
  return to_json(found);
end $$;

-- The lease of the lead: an advisory lock of the session, and a number that each holder raises.

create function phalanx.take_lease(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.team_of(args);
  number bigint;
begin
  if not pg_try_advisory_lock(phalanx.key('lease'), it.id) then
    return 'null';
  end if;
  -- Waits for calls that the previous lead had admitted.
  it := phalanx.admit(args - 'actor' || jsonb_build_object('actor', (args->'actor') - 'fence'), true);
  update phalanx.team t set lease = t.lease + 1 where t.id = it.id returning t.lease into number;
  return to_json(number);
end $$;

-- Acquires the lease again for a session that was connected anew: `held`, `lost` if another process
-- had it in between, or `busy` while another session holds it under the same number.
create function phalanx.retake_lease(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.team_of(args);
  is_taken boolean := pg_try_advisory_lock(phalanx.key('lease'), it.id);
  is_same boolean;
begin
  select t.lease = (args->>'number')::bigint into is_same from phalanx.team t where t.id = it.id;
  if is_taken and is_same then
    return '"held"';
  elsif is_taken then
    perform pg_advisory_unlock(phalanx.key('lease'), it.id);
  end if;
  return case when is_same then '"busy"' else '"lost"' end;
end $$;

create function phalanx.release_lease(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  return to_json(pg_advisory_unlock(phalanx.key('lease'), it.id));
end $$;

create function phalanx.is_led(args jsonb) returns json language plpgsql stable as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  return to_json(exists (
    select 1 from pg_catalog.pg_locks l
    where l.locktype = 'advisory' and l.granted and l.objsubid = 2
      and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
      and l.classid::bigint = phalanx.key('lease') and l.objid::bigint = it.id));
end $$;

-- Notifications

-- Subscribes this session to the changes of a team and returns the channel.
create function phalanx.listen(args jsonb) returns json language plpgsql as $$
declare
  it phalanx.team := phalanx.team_of(args);
begin
  execute format('listen %I', it.channel);
  return to_json(it.channel);
end $$;
