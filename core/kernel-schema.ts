import type { Migration } from 'busbar/sdk'

/** What the kernel itself keeps, in the schema `kernel`. */
export const kernelMigrations: readonly Migration[] = [
  {
    name: '001-create-kernel',
    phase: 'expand',
    sql: `
    create table $schema.plugin (
      id text primary key,
      desired text not null check (desired in ('on', 'off')),
      -- What the operator consented to when a third-party plugin was turned on.
      grants jsonb not null default '[]',
      config jsonb not null default '{}',
      quarantined text,
      updated_at timestamptz(3) not null
    );
    create table $schema.idempotency_key (
      caller text not null,
      route text not null,
      key text not null,
      fingerprint text not null,
      status integer,
      answer jsonb,
      created_at timestamptz(3) not null,
      primary key (caller, route, key)
    );
    create index idempotency_key_created_at on $schema.idempotency_key (created_at);
    create table $schema.audit_log (
      id uuid primary key,
      action text not null,
      resource_type text not null,
      resource_id text,
      project_id uuid,
      user_id uuid,
      user_email text,
      user_username text,
      token_id uuid,
      token_name text not null default '',
      details jsonb not null,
      ip_address text,
      created_at timestamptz(3) not null
    );
    create index audit_log_created_at on $schema.audit_log (created_at desc, id desc);
  `
  },
  {
    name: '002-index-audit-log',
    phase: 'expand',
    // One for each filter of the audit log that picks few records; all serve newest first.
    sql: `
    create index audit_log_action on $schema.audit_log (action, created_at desc, id desc);
    create index audit_log_resource on $schema.audit_log (resource_id, created_at desc, id desc);
    create index audit_log_user on $schema.audit_log (user_id, created_at desc, id desc);
  `
  },
  {
    name: '003-create-schedule',
    phase: 'expand',
    sql: `
    create table $schema.schedule (
      plugin text not null,
      key text not null,
      -- By the plugin's code; otherwise it was set while the plugin ran.
      declared boolean not null,
      cron text not null,
      time_zone text not null,
      job text not null,
      payload jsonb not null,
      missed text not null check (missed in ('run-once', 'skip')),
      -- Null once no further time matches.
      next_at timestamptz(3),
      last_at timestamptz(3),
      primary key (plugin, key)
    );
    create index schedule_next_at on $schema.schedule (next_at);
  `
  },
  {
    name: '004-remember-cascades',
    phase: 'expand',
    sql: 'alter table $schema.plugin add column off_with text'
  },
  {
    name: '005-seal-remembered-answers',
    phase: 'expand',
    // What was remembered in the clear goes: it would have been kept for a day.
    sql: `
    delete from $schema.idempotency_key;
    alter table $schema.idempotency_key drop column answer, add column answer text;
  `
  },
  {
    name: '006-remember-headers-of-answers',
    phase: 'expand',
    sql: 'alter table $schema.idempotency_key add column answer_options text'
  }
]
