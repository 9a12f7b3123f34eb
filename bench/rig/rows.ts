import type pg from 'pg'
import { expect } from './expect.js'
import type { Platform } from './platform.js'

/** One is made through the API, the others are copies of it: what a list costs is in its rows. */
export async function fillApplications(
  { admin, projectId }: Platform,
  database: pg.Client,
  path: string,
  wanted: number
): Promise<void> {
  const list = expect(await admin.get(path), 200) as object[]
  if (list.length === 0) {
    expect(
      await admin.post(path, {
        name: 'Web',
        type: 'git',
        build_type: 'dockerfile',
        source_repo: 'https://example.com/web.git',
        branch: 'main'
      }),
      201
    )
  }
  await multiply(
    database,
    'applications.application',
    'project_id',
    projectId,
    wanted - Math.max(1, list.length)
  )
}

/** Copies one row, under names of their own. A million take seconds, as nearly each value is a constant. */
export async function multiply(
  database: pg.Client,
  table: string,
  key: string,
  value: string,
  times: number
): Promise<void> {
  await copy(database, { table, key, value, copies: `generate_series(1, ${times}) as n` })
}

/** Copies one deployment to all applications, so many times, as if there had been one a minute. */
export async function multiplyDeployments(
  database: pg.Client,
  applicationId: string,
  times: number
): Promise<void> {
  await copy(database, {
    table: 'deployments.deployment',
    key: 'application_id',
    value: applicationId,
    copies: `applications.application a, generate_series(1, ${times}) as n`,
    values: {
      application_id: 'a.id',
      project_id: 'a.project_id',
      started_at: "one.started_at - n * interval '1 minute'",
      http_check: 'null'
    }
  })
}

/** Copies one piece of what an application has written, as if it had written the like each second before. */
export async function multiplyLines(
  database: pg.Client,
  applicationId: string,
  times: number
): Promise<void> {
  const { rows } = await database.query<{ last: string }>('select min(ordinal) as last from logs.chunk')
  const before = (column: string): string => `one.${column} - n * interval '1 second'`
  await copy(database, {
    table: 'logs.chunk',
    key: 'source_id',
    value: applicationId,
    copies: `generate_series(1, ${times}) as n`,
    values: {
      ordinal: `${rows[0]?.last ?? 0} - n`,
      begins_at: before('begins_at'),
      ends_at: before('ends_at')
    }
  })
}

async function copy(
  database: pg.Client,
  {
    table,
    key,
    value,
    copies,
    values = {}
  }: {
    readonly table: string
    readonly key: string
    readonly value: string
    readonly copies: string
    readonly values?: Readonly<Record<string, string>>
  }
): Promise<void> {
  const { rows } = await database.query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
    where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table]
  )
  const names = rows.map(({ name }) => name)
  const own: Readonly<Record<string, string>> = {
    id: 'gen_random_uuid()',
    slug: 'gen_random_uuid()::text',
    ...values
  }
  await database.query(
    `insert into ${table} (${names.join(', ')}) select ${names.map(name => own[name] ?? `one.${name}`).join(', ')}
    from (select * from ${table} where ${key} = $1 limit 1) as one, ${copies}`,
    [value]
  )
}
