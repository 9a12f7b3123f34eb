import { applicationTable } from 'busbar/api/applications'
import { projectTable } from 'busbar/api/projects'
import type { Migration } from 'busbar/sdk'

export const createDeployments: Migration = {
  name: '001-create-deployments',
  phase: 'expand',
  sql: `
    create table $schema.deployment (
      id uuid primary key,
      project_id uuid not null references ${projectTable.reference} on delete restrict,
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      kind text not null,
      origin_id uuid,
      status text not null,
      triggered_by text not null,
      image_tag text,
      commit_sha text,
      commit_message text,
      commit_author text,
      error_message text,
      idempotency_key text,
      started_at timestamptz(3) not null,
      build_started_at timestamptz(3),
      build_ended_at timestamptz(3),
      deploy_started_at timestamptz(3),
      finished_at timestamptz(3),
      health_status text,
      health_message text,
      health_checked_at timestamptz(3),
      step text,
      remedy text,
      evidence text,
      container_port integer,
      switch_served integer,
      switch_failed integer,
      switch_longest_gap_ms integer,
      switch_cut integer,
      drain_ms integer,
      runs integer not null default 0,
      seen_at timestamptz(3),
      cancel_requested_at timestamptz(3),
      log_cut_lines bigint not null default 0,
      log_cut_bytes bigint not null default 0
    );
    create unique index deployment_active on $schema.deployment (application_id) where status in ('pending', 'building', 'deploying');
    create index deployment_newest on $schema.deployment (application_id, started_at desc, id desc);
    create index deployment_newest_of_all on $schema.deployment (started_at desc, id desc);
    create index deployment_project on $schema.deployment (project_id);

    create table $schema.deployment_log (
      deployment_id uuid not null references $schema.deployment (id) on delete cascade,
      seq integer not null,
      is_tail boolean not null,
      lines integer not null,
      bytes integer not null,
      text text not null,
      primary key (deployment_id, seq)
    );

    create table $schema.follow_up (
      application_id uuid primary key references ${applicationTable.reference} on delete restrict,
      triggered_by text not null,
      requested_at timestamptz(3) not null
    );

    create table $schema.deploy_hook (
      application_id uuid primary key references ${applicationTable.reference} on delete restrict,
      project_id uuid not null references ${projectTable.reference} on delete restrict,
      token_hash text not null unique,
      token text not null,
      created_at timestamptz(3) not null
    )`
}
