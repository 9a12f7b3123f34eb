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

/** Copies one row, under names of their own. */
export async function multiply(
  database: pg.Client,
  table: string,
  key: string,
  value: string,
  times: number
): Promise<void> {
  await database.query(
    `
    insert into ${table} select (jsonb_populate_record(null::${table},
      to_jsonb(one) || jsonb_build_object('id', gen_random_uuid(), 'slug', gen_random_uuid()))).*
    from (select * from ${table} where ${key} = $1 limit 1) as one, generate_series(1, $2::int)`,
    [value, times]
  )
}
