import { setTimeout as sleep } from 'node:timers/promises'
import { createTestKernel } from 'busbar/sdk/testing'

/** A platform of its own that begins something, and says how far it is, to be killed there. */
const { url, directory, path, post, body } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string
  directory: string
  path: string
  post: string
  body?: object
}

const k = await createTestKernel({ state: { database: { url, drop: async () => {} }, directory } })
const ann = await k.as.session('ann')
const begun = await ann.post(post, body)
const watched = path === '' ? `${post}/${begun.body.id}` : path
console.log(JSON.stringify({ begun: begun.status, path: watched }))
for (let last = ''; ; await sleep(20)) {
  const [row] = await k.query<{ detail: string }>(
    `select coalesce(status_detail, '') || ', ' || volume || case when container_id is null then ' without' else ' with' end
      || ' a container' as detail from databases.database where id = '${watched.split('/').at(-1)}'`
  )
  if (row !== undefined && row.detail !== last) console.log(JSON.stringify({ detail: row.detail }))
  last = row?.detail ?? ''
}
