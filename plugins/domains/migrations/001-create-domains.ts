import { applicationTable } from 'busbar/api/applications'
import { certificateTable } from 'busbar/api/certificates'
import type { Migration } from 'busbar/sdk'

/**
 * `own_host` outlives applications: a name that one project has had is given to no other, as browsers keep what they were
 * sent under it. `target` is the container that requests go to.
 */
export const createDomains: Migration = {
  name: '001-create-domains',
  phase: 'expand',
  sql: `
    create table $schema.domain (
      id uuid primary key,
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      hostname text collate "C" not null,
      path text collate "C" not null,
      strip_path boolean not null,
      internal_path text not null,
      container_port integer,
      ssl_mode text not null,
      ssl_provider text,
      force_https boolean not null,
      certificate_id uuid references ${certificateTable.reference} on delete restrict,
      advanced_config jsonb,
      verified_at timestamptz(3),
      tls_status text not null,
      tls_issuer text,
      tls_not_after timestamptz(3),
      tls_last_checked_at timestamptz(3),
      tls_error text,
      tls_advisory text,
      created_at timestamptz(3) not null,
      unique (hostname, path)
    );
    create index domain_application on $schema.domain (application_id, hostname, path);
    create index domain_certificate on $schema.domain (certificate_id) where certificate_id is not null;
    create index domain_checked on $schema.domain (tls_last_checked_at nulls first);

    create table $schema.route_feature (
      id uuid primary key,
      domain_id uuid not null references $schema.domain on delete cascade,
      feature_type text not null,
      config jsonb not null,
      enabled boolean not null,
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null,
      unique (domain_id, feature_type)
    );

    create table $schema.own_host (
      hostname text collate "C" primary key,
      project_id uuid not null,
      application_id uuid unique
    );

    create table $schema.target (
      application_id uuid primary key references ${applicationTable.reference} on delete restrict,
      deployment_id uuid not null,
      container_id text not null,
      host text not null,
      port integer not null,
      is_running boolean not null
    );
  `
}
