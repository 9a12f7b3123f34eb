import { createHash } from 'node:crypto'
import type { Log } from 'busbar/sdk'
import { errorCode } from './problems.js'
import {
  ofOthers,
  onOthersOf,
  reachingOthers,
  reachingOthersOf,
  withOthers,
  withOthersOf
} from './reaching-code.js'
import type { Statements } from './statements.js'

/** Set on connections of a third-party plugin: its schema. On all others it is empty, and nothing is looked at. */
export const guardedSchema = 'busbar.schema'

const within = (text: string): string => text.replaceAll('$1', 'own_schema')
const literal = (sentence: (what: string) => string): string =>
  sentence('\0')
    .split('\0')
    .map(part => `'${part.replaceAll("'", "''")}'`)
    .join(' || found_code || ')

/**
 * PostgreSQL runs it at the end of each command that makes or changes objects, by whatever way it comes: in a text, a block, a
 * function, a transaction. What has been there for longer does not matter, unless it is in the plugin's own schema.
 */
const body = `
declare
  own_schema text := current_setting('${guardedSchema}', true);
  found_code text;
begin
  if coalesce(own_schema, '') = '' or tg_tag like 'DROP %' then return; end if;
  select code.what into found_code from (${within(onOthersOf)}) code
    join pg_event_trigger_ddl_commands() made on made.objid = code.oid
      and made.classid in ('pg_trigger'::regclass, 'pg_rewrite'::regclass) limit 1;
  if found_code is not null then raise exception using message = ${literal(ofOthers)}; end if;
  select code.what into found_code from (${within(reachingOthersOf)}) code limit 1;
  if found_code is not null then raise exception using message = ${literal(reachingOthers)}; end if;
  select code.what into found_code from (${within(withOthersOf)}) code limit 1;
  if found_code is not null then raise exception using message = ${literal(withOthers)}; end if;
end`
const digest = createHash('sha256').update(body).digest('hex').slice(0, 16)
const insufficientPrivilege = '42501'

/**
 * Has the server refuse what a third-party plugin makes at run time that would run in statements of others, as `refuseReachingCode`
 * does for its migrations: in the statement itself, and without a price for any other. False when the role may not make that: it
 * takes a superuser.
 */
export async function installCodeGuard(database: Statements, log: Log): Promise<boolean> {
  const isThere = `
    select from pg_event_trigger t join pg_proc p on p.oid = t.evtfoid
    where t.evtname = 'busbar_code_guard' and t.evtenabled = 'A' and obj_description(p.oid, 'pg_proc') = $1`
  if ((await database.query(isThere, [digest])).length > 0) return true
  try {
    await database.transaction(async tx => {
      await database.query(
        "set local lock_timeout = '1min'; select pg_advisory_xact_lock(hashtextextended('kernel.code-guard', 0))",
        undefined,
        tx
      )
      await database.query(
        `drop event trigger if exists busbar_code_guard;
        create or replace function kernel.refuse_reaching_code () returns event_trigger language plpgsql
          set search_path = pg_catalog as $code_guard$${body}$code_guard$;
        comment on function kernel.refuse_reaching_code () is '${digest}';
        create event trigger busbar_code_guard on ddl_command_end execute function kernel.refuse_reaching_code();
        alter event trigger busbar_code_guard enable always`,
        undefined,
        tx
      )
    })
    return true
  } catch (error) {
    if (errorCode(error) !== insufficientPrivilege) throw error
    log.info(
      'the role in DATABASE_URL is no superuser: what third-party plugins make outside of migrations that would run in statements of others is seen only when they start'
    )
    return false
  }
}
