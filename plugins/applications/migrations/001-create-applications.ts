import { projectTable } from 'busbar/api/projects'
import type { Migration } from 'busbar/sdk'

export const createApplications: Migration = {
  name: '001-create-applications',
  phase: 'expand',
  sql: `
    create table $schema.application (
      id uuid primary key,
      project_id uuid not null references ${projectTable.reference} on delete restrict,
      parent_application_id uuid references $schema.application (id) on delete restrict,
      name text not null,
      slug text not null,
      type text not null,
      status text not null default 'inactive',
      build_type text not null,
      build_type_override text,
      builder_image text,
      custom_buildpacks text not null default '[]',
      source_kind text,
      source_ref text,
      source_repo text,
      source_image text,
      branch text,
      auto_deploy_branch text,
      dockerfile_path text,
      root_directory text,
      git_integration_id uuid,
      git_token text,
      webhook_secret text,
      deploy_hook_enabled boolean not null default false,
      preview_branch_pattern text,
      preview_domain_template text,
      container_port integer,
      cpu_limit double precision not null default 0,
      memory_limit bigint not null default 0,
      container_caps text not null default 'minimal',
      readonly_rootfs boolean not null default true,
      health_check_type text not null default 'http',
      health_check_path text,
      health_check_command text,
      health_check_expect_status integer,
      health_check_interval_seconds integer,
      health_check_retries integer,
      health_check_start_period_seconds integer,
      health_check_timeout_seconds integer,
      container_deployment_id uuid,
      config_changed_at timestamptz(3),
      source_changed_at timestamptz(3),
      last_activity_at timestamptz(3),
      last_deployed_at timestamptz(3),
      deleting_at timestamptz(3),
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null,
      constraint application_slug_key unique (slug)
    );
    create index application_newest on $schema.application (project_id, created_at desc, id desc);
    create index application_previews on $schema.application (parent_application_id) where parent_application_id is not null;
    create index application_deleting on $schema.application (id) where deleting_at is not null;
  `
}
