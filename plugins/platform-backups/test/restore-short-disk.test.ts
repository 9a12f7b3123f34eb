import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createDatabase, createTestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { requireRoot } from '../../../lab/requirements.js'
import { fillDisk, mebi } from '../../databases/test/engine-lab.js'
import { restoreFailure } from '../restore/restore-failure.js'
import { busbar } from './cli.js'
import { folder } from './faults-kit.js'
import { archives, backUp, makeKey } from './kit.js'

const largeBytes = 24 * mebi

test(
  'a restore that has no room on the disk leaves what was there, and is done once there is some',
  { timeout: 280_000 },
  async t => {
    if (!requireRoot(t, 'mounts a small disk')) return
    const former = await createTestKernel()
    t.teardown(() => former.close())
    const admin = await former.as.session()
    await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })
    const large = join('plugins', 'notes', 'large')
    await mkdir(join(former.state.directory, 'plugins', 'notes'), { recursive: true })
    await writeFile(join(former.state.directory, large), randomBytes(largeBytes))
    const key = await makeKey(admin)
    t.match(await backUp(admin), { status: 'succeeded' })
    const [file = ''] = await archives(former)
    await former.stop()

    const directory = await folder(t)
    await promisify(execFile)('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=711', 'tmpfs', directory])
    t.teardown(async () => await promisify(execFile)('umount', ['--lazy', directory]))
    const database = await createDatabase()
    t.teardown(() => database.drop())
    const options = { directory, databaseUrl: database.url, environment: { BUSBAR_RECOVERY_KEY: key } }
    const state = { directory, database: { ...database, drop: async () => {} } }
    const names = async (): Promise<string[]> => {
      const k = await createTestKernel({ state })
      const { body } = await (await k.as.session()).get('/api/projects')
      await k.stop()
      return body.map(({ name }: { name: string }) => name).sort()
    }
    const full = new RegExp(
      `^not restored: .*the disk of ${directory} is full: make room on it, and run it again`
    )

    await t.test('into an empty installation', async t => {
      const free = await fillDisk({ dataRoot: directory }, 8 * mebi)
      const refused = await busbar(['restore', file], options)
      t.match(refused, { code: 1, stderr: full }, refused.stderr)
      t.same(await readdir(directory), ['filler'], 'nothing half is left')
      await free()
      const restored = await busbar(['restore', file], options)
      t.equal(restored.code, 0, restored.stderr)
      t.same(await names(), ['Shop'])
    })

    await t.test('in the place of one that is there, with or without a backup of that', async t => {
      const present = await createTestKernel({ state })
      await (await present.as.session()).post('/api/projects', { name: 'Later', slug: 'later' })
      await present.stop()
      const own = randomBytes(64)
      await writeFile(join(directory, large), own)
      const before = (await readdir(directory)).sort()
      const free = await fillDisk({ dataRoot: directory }, 8 * mebi)
      const withoutIt = await busbar(['restore', file, '--replace', '--without-snapshot'], options)
      t.match(withoutIt, { code: 1, stderr: full }, withoutIt.stderr)
      const withIt = await busbar(['restore', file, '--replace'], options)
      t.match(
        withIt,
        {
          code: 1,
          stderr: /so nothing was changed: the disk of .* is full.*: make room on it, and run it again/
        },
        withIt.stderr
      )
      await free()
      t.same((await readdir(directory)).filter(name => name !== 'backups').sort(), before)
      t.ok((await readFile(join(directory, large))).equals(own), 'its files are there')
      t.same(await names(), ['Later', 'Shop'])
      const restored = await busbar(['restore', file, '--replace'], options)
      t.equal(restored.code, 0, restored.stderr)
      t.same(await names(), ['Shop'])
      t.equal((await readFile(join(directory, large))).length, largeBytes)
    })
  }
)

test('a disk of the database that is full is told from that of the files; what fails otherwise says what it said', async t => {
  const ofDatabase = Object.assign(
    new Error('could not extend file "base/5/1259": No space left on device'),
    {
      code: '53100'
    }
  )
  t.match(restoreFailure(ofDatabase, '/data'), {
    message:
      /^the disk of the database is full: make room on it, and run it again. What failed: could not extend file/
  })
  t.match(restoreFailure(new Error('initdb: could not write: No space left on device'), '/data'), {
    message: /^the disk of \/data is full: make room on it/
  })
  const other = new Error('the archive is damaged')
  t.equal(restoreFailure(other, '/data'), other)
})
