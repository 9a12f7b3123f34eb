/*
 * Questions to the system catalogs of PostgreSQL 15 and later. `$1` are the schemas. Members of extensions come with the
 * extension. Made for `search_path = pg_catalog`: then every other name is written with its schema.
 */

const notOfExtension = (catalog: string, oid: string): string =>
  `not exists (select from pg_depend e where e.classid = '${catalog}'::regclass and e.objid = ${oid} and e.deptype = 'e')`
const within = 'n.nspname = any($1)'
const relation = (alias: string): string =>
  `quote_ident((select nspname from pg_namespace where oid = ${alias}.relnamespace)) || '.' || quote_ident(${alias}.relname)`

export const extensionsText = `
  select e.extname as name, n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace
  where e.extname <> 'plpgsql' order by 1`

export const tablesText = `
  select c.oid::text as oid, n.nspname as schema, c.relname as name, c.relpersistence = 'u' as unlogged,
    coalesce(c.reloptions, '{}') as options, c.relrowsecurity as "rowSecurity", c.relforcerowsecurity as "forcedRowSecurity",
    case when c.relkind = 'p' then pg_get_partkeydef(c.oid) end as "partitionBy",
    pg_get_expr(c.relpartbound, c.oid) as "partitionOf",
    array(select ${relation('p')} from pg_inherits i join pg_class p on p.oid = i.inhparent where i.inhrelid = c.oid order by i.inhseqno) as parents
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where ${within} and c.relkind in ('r', 'p') and ${notOfExtension('pg_class', 'c.oid')} order by 2, 3`

export const columnsText = `
  select a.attrelid::text as table, a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
    case when a.attcollation <> t.typcollation then (
      select quote_ident(cn.nspname) || '.' || quote_ident(co.collname) from pg_collation co join pg_namespace cn on cn.oid = co.collnamespace
      where co.oid = a.attcollation) end as collation,
    a.attnotnull as "notNull", pg_get_expr(d.adbin, d.adrelid) as expression, a.attgenerated as generated, a.attidentity as identity,
    case when a.attstorage <> t.typstorage then
      case a.attstorage when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end end as storage,
    a.attislocal as local
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
    join pg_type t on t.oid = a.atttypid left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where ${within} and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped order by a.attrelid, a.attnum`

export const sequencesText = `
  select c.oid::text as oid, n.nspname as schema, c.relname as name, format_type(s.seqtypid, null) as type, s.seqstart::text as start,
    s.seqincrement::text as increment, s.seqmin::text as min, s.seqmax::text as max, s.seqcache::text as cache, s.seqcycle as cycle,
    d.deptype = 'i' as "ofIdentity", tn.nspname as "ownerSchema", t.relname as "ownerTable", a.attname as "ownerColumn"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_sequence s on s.seqrelid = c.oid
    left join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass
      and d.refobjsubid > 0 and d.deptype in ('a', 'i')
    left join pg_class t on t.oid = d.refobjid left join pg_namespace tn on tn.oid = t.relnamespace
    left join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
  where ${within} and ${notOfExtension('pg_class', 'c.oid')} order by 2, 3`

export const enumsText = `
  select 'the type ' || n.nspname || '.' || t.typname as what,
    format('create type %I.%I as enum (%s)', n.nspname, t.typname,
      (select coalesce(string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder), '') from pg_enum e where e.enumtypid = t.oid)) as sql
  from pg_type t join pg_namespace n on n.oid = t.typnamespace
  where ${within} and t.typtype = 'e' and ${notOfExtension('pg_type', 't.oid')} order by 1`

export const domainsText = `
  select 'the domain ' || n.nspname || '.' || t.typname as what,
    format('create domain %I.%I as %s', n.nspname, t.typname, format_type(t.typbasetype, t.typtypmod))
      || case when t.typdefault is not null then ' default ' || pg_get_expr(t.typdefaultbin, 0) else '' end
      || case when t.typnotnull then ' not null' else '' end
      || coalesce((select string_agg(format(' constraint %I %s', k.conname, pg_get_constraintdef(k.oid)), '' order by k.conname)
        from pg_constraint k where k.contypid = t.oid and k.contype = 'c'), '') as sql
  from pg_type t join pg_namespace n on n.oid = t.typnamespace
  where ${within} and t.typtype = 'd' and ${notOfExtension('pg_type', 't.oid')} order by 1`

export const compositesText = `
  select 'the type ' || n.nspname || '.' || t.typname as what,
    format('create type %I.%I as (%s)', n.nspname, t.typname,
      (select coalesce(string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum), '')
        from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped)) as sql
  from pg_type t join pg_namespace n on n.oid = t.typnamespace join pg_class c on c.oid = t.typrelid
  where ${within} and t.typtype = 'c' and c.relkind = 'c' and ${notOfExtension('pg_type', 't.oid')} order by 1`

export const rangesText = `
  select 'the type ' || n.nspname || '.' || t.typname as what,
    format('create type %I.%I as range (subtype = %s%s%s)', n.nspname, t.typname, format_type(r.rngsubtype, null),
      case when r.rngsubdiff <> 0 then ', subtype_diff = ' || r.rngsubdiff::regproc::text else '' end,
      case when r.rngcollation <> 0 then ', collation = ' || r.rngcollation::regcollation::text else '' end) as sql
  from pg_type t join pg_namespace n on n.oid = t.typnamespace join pg_range r on r.rngtypid = t.oid
  where ${within} and t.typtype = 'r' and ${notOfExtension('pg_type', 't.oid')} order by 1`

export const functionsText = `
  select 'the function ' || p.oid::regprocedure::text as what, pg_get_functiondef(p.oid) as sql,
    obj_description(p.oid, 'pg_proc') as comment,
    (case p.prokind when 'p' then 'procedure ' else 'function ' end) || p.oid::regprocedure::text as signature
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where ${within} and p.prokind in ('f', 'p', 'w') and ${notOfExtension('pg_proc', 'p.oid')} order by 1`

export const viewsText = `
  select 'the view ' || n.nspname || '.' || c.relname as what,
    format('create %s %I.%I%s as %s', case c.relkind when 'm' then 'materialized view' else 'view' end, n.nspname, c.relname,
      case when c.reloptions is null then '' else ' with (' || array_to_string(c.reloptions, ', ') || ')' end,
      rtrim(pg_get_viewdef(c.oid), '; ')) || case c.relkind when 'm' then ' with no data' else '' end as sql,
    case when c.relkind = 'm' and c.relispopulated then format('%I.%I', n.nspname, c.relname) end as refresh
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where ${within} and c.relkind in ('v', 'm') and ${notOfExtension('pg_class', 'c.oid')} order by 1`

/** Those of partitions that come with their parent are left out, and so is `not null`, which is of the columns. */
export const constraintsText = `
  select k.contype = 'f' as "isForeign", 'the constraint ' || k.conname || ' of ' || n.nspname || '.' || c.relname as what,
    format('alter table %I.%I add constraint %I %s', n.nspname, c.relname, k.conname, pg_get_constraintdef(k.oid)) as sql
  from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
  where ${within} and k.contype in ('p', 'u', 'x', 'c', 'f') and k.conparentid = 0 and k.conislocal
    and ${notOfExtension('pg_class', 'c.oid')}
  order by array_position(array['p', 'u', 'x', 'c', 'f'], k.contype::text), 2`

/** Of a partitioned table without `only`, which makes those of the partitions too. */
export const indexesText = `
  select 'the index ' || n.nspname || '.' || i.relname as what, pg_get_indexdef(x.indexrelid) as sql,
    c.relkind = 'p' as "isPartitioned",
    format('CREATE %sINDEX %I ON ', case when x.indisunique then 'UNIQUE ' else '' end, i.relname) as head
  from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid join pg_namespace n on n.oid = c.relnamespace
  where ${within} and not i.relispartition and not exists (
    select from pg_constraint k where k.conindid = x.indexrelid and k.contype in ('p', 'u', 'x'))
    and ${notOfExtension('pg_class', 'c.oid')} order by 1`

export const statisticsText = `
  select 'the statistics ' || n.nspname || '.' || s.stxname as what, pg_get_statisticsobjdef(s.oid) as sql
  from pg_statistic_ext s join pg_namespace n on n.oid = s.stxnamespace where ${within} order by 1`

export const triggersText = `
  select 'the trigger ' || t.tgname || ' on ' || n.nspname || '.' || c.relname as what, pg_get_triggerdef(t.oid) as sql,
    case t.tgenabled when 'O' then null else format('alter table %I.%I %s trigger %I', n.nspname, c.relname,
      case t.tgenabled when 'D' then 'disable' when 'R' then 'enable replica' else 'enable always' end, t.tgname) end as mode
  from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
  where ${within} and not t.tgisinternal and t.tgparentid = 0 order by 1`

export const rulesText = `
  select 'the rule ' || r.rulename || ' on ' || n.nspname || '.' || c.relname as what, rtrim(pg_get_ruledef(r.oid), ';') as sql
  from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
  where ${within} and r.rulename <> '_RETURN' order by 1`

/** Roles are those of a server: a policy is for the role that the platform has. */
export const policiesText = `
  select 'the policy ' || p.polname || ' on ' || n.nspname || '.' || c.relname as what,
    format('create policy %I on %I.%I as %s for %s to public', p.polname, n.nspname, c.relname,
      case when p.polpermissive then 'permissive' else 'restrictive' end,
      case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end)
      || coalesce(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
      || coalesce(' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') as sql
  from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
  where ${within} order by 1`

export const commentsText = `
  select 'the comment on ' || n.nspname || '.' || c.relname as what,
    case when d.objsubid > 0 then format('comment on column %I.%I.%I is %L', n.nspname, c.relname, a.attname, d.description)
      else format('comment on %s %I.%I is %L', case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
        when 'i' then 'index' when 'I' then 'index' else 'table' end, n.nspname, c.relname, d.description) end as sql
  from pg_description d join pg_class c on d.classoid = 'pg_class'::regclass and c.oid = d.objoid
    join pg_namespace n on n.oid = c.relnamespace left join pg_attribute a on a.attrelid = c.oid and a.attnum = d.objsubid
  where ${within} and c.relkind in ('r', 'p', 'v', 'm', 'S', 'i', 'I') and ${notOfExtension('pg_class', 'c.oid')} order by 1`

/** What none of the above describes: it is named, so that nobody believes that it is kept. */
export const leftOutText = `
  select 'the aggregate ' || p.oid::regprocedure::text as what from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where ${within} and p.prokind = 'a' and ${notOfExtension('pg_proc', 'p.oid')}
  union all select 'the operator ' || o.oid::regoperator::text from pg_operator o join pg_namespace n on n.oid = o.oprnamespace
    where ${within} and ${notOfExtension('pg_operator', 'o.oid')}
  union all select 'the collation ' || n.nspname || '.' || k.collname from pg_collation k join pg_namespace n on n.oid = k.collnamespace
    where ${within} and ${notOfExtension('pg_collation', 'k.oid')}
  union all select 'the foreign table ' || n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where ${within} and c.relkind = 'f'
  union all select 'the base type ' || n.nspname || '.' || t.typname from pg_type t join pg_namespace n on n.oid = t.typnamespace
    where ${within} and t.typtype = 'b' and t.typelem = 0 and ${notOfExtension('pg_type', 't.oid')}
  union all select 'the text search configuration ' || n.nspname || '.' || s.cfgname from pg_ts_config s join pg_namespace n on n.oid = s.cfgnamespace
    where ${within} and ${notOfExtension('pg_ts_config', 's.oid')}
  union all select 'large objects (' || count(*) || ')' from pg_largeobject_metadata having count(*) > 0
  order by 1`
