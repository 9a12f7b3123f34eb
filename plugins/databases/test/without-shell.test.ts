import { randomBytes } from 'node:crypto'
import { containerRuntime } from 'busbar/api/containers'
import { definePlugin } from 'busbar/sdk'
import Docker from 'dockerode'
import { type Test, test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { type DatabaseEngine, type DatabaseEngineKind, databaseEngines } from '../api.js'
import { containerOf, createDatabase, type Made, removeAll, runIn, startLab } from './lab.js'

const server = ['/httpd', '-f', '-p', '80', '-h', '/www']
/** What its server needs, and a program that asks it; nothing else can be run in it. */
const stripped =
  'cp /usr/bin/busybox /httpd; cp /usr/bin/busybox /wget; mkdir /www; echo up > /www/ready; rm -rf /bin /sbin /usr/bin /usr/sbin'

/** An image without a shell, as those are that are made from nothing, under `:1`; its name. */
async function imageWithoutShell(): Promise<string> {
  const docker = new Docker()
  const repo = `lab-${randomBytes(4).toString('hex')}`
  const container = await docker.createContainer({ Image: 'busybox:lab', Cmd: ['sh', '-c', stripped] })
  try {
    await container.start()
    await container.wait()
    await container.commit({ repo, tag: '1', changes: `CMD ${JSON.stringify(server)}` })
  } finally {
    await container.remove()
  }
  return repo
}

const engine: DatabaseEngine = {
  newCredentials: () => ({}),
  dataPath: () => '/data',
  container: () => ({ env: {} }),
  ready: () => ({ argv: ['/wget', '-q', '-O', '/dev/null', 'http://127.0.0.1/ready'], env: {} }),
  connectionString: () => null,
  connectionParts: () => ({}),
  dump: null
}

async function startWith(t: Test, image: string) {
  const kind: DatabaseEngineKind = {
    label: 'Plain',
    defaults: { version: '1', port: 80 },
    image: version => `${image}:${version}`,
    load: async () => engine
  }
  const definition = definePlugin({
    id: 'plain',
    contributes: contribute => {
      contribute(databaseEngines, 'plain', kind)
    }
  })
  const lab = await startLab(t, {
    inline: [{ manifest: { id: 'plain', requires: { databases: '^0.1.0' } }, definition }]
  })
  t.teardown(async () => {
    // An image that a container has loses its name only.
    await removeAll(lab.k)
    await new Docker().getImage(`${image}:1`).remove({ force: true })
  })
  return lab
}

test('a database whose image has no shell runs once its server answers', async t => {
  if (!(await requireDatabaseImages(t))) return
  const image = await imageWithoutShell()
  const lab = await startWith(t, image)
  const hasNoShell = async (t: Test, { id }: Made): Promise<void> => {
    const exitCode = await lab.k
      .service(containerRuntime)
      .exec(await containerOf(lab.k, id), ['sh', '-c', 'true'], {
        onLine: () => {},
        signal: new AbortController().signal
      })
    t.ok([126, 127].includes(exitCode), `${exitCode}`)
  }

  await t.test('of an engine that a plugin has contributed', async t => {
    const made = await createDatabase(lab, { name: 'plain', type: 'plain' })
    await hasNoShell(t, made)
    t.equal(await runIn(lab.k, made.id, ['/wget', '-q', '-O', '-', 'http://127.0.0.1/ready']), 'up')
    t.match(await lab.ann.post(`${made.path}/restart`), { status: 200 })
  })

  await t.test('of any kind', async t => {
    const made = await createDatabase(lab, {
      name: 'other',
      type: 'other',
      image: `${image}:1`,
      container_port: 80
    })
    await hasNoShell(t, made)
    t.match((await lab.ann.get(made.path)).body, { status: 'running' })
  })
})
