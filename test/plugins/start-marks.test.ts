import { mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { StartMarks } from '../../core/plugins/quarantine.js'

const here = hostname().replace(/[^\w.-]/g, '_')

async function folder(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-marks-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  return directory
}

/** Ids of the plugins that a boot keeps off. */
const takenIn = (directory: string): string[] => [...new StartMarks(directory).takeCrashed().keys()]

test('a mark of a process that had our own id is of a dead one, as in a container that has begun again', async t => {
  const directory = await folder(t)
  // Nothing of this process: at its boot it has marked nothing yet.
  new StartMarks(directory).begin('guilty')
  const taken = new StartMarks(directory).takeCrashed()
  t.same([...taken.keys()], ['guilty'])
  t.match(taken.get('guilty'), /the process died while this plugin was starting/)
  t.same(await readdir(directory), [], 'and is gone')
  t.same(takenIn(directory), [], 'and tells no second time')
})

test('a mark of a process that lives is left, whoever it belongs to', async t => {
  const directory = await folder(t)
  for (const pid of [process.ppid, 1]) await writeFile(join(directory, `starting-${here}-${pid}`), 'busy\n')
  t.same(takenIn(directory), [])
  t.equal((await readdir(directory)).length, 2)
})

test('of another machine only a mark that nothing is written to any more is taken', async t => {
  const directory = await folder(t)
  const file = join(directory, `starting-other-host-${process.pid}`)
  await writeFile(file, 'far\n')
  t.same(takenIn(directory), [], 'the same id there is another process')
  const old = new Date(Date.now() - 5 * 60_000)
  await utimes(file, old, old)
  t.same(takenIn(directory), ['far'])
})

test('a plugin that is stopped, or has ended its start, is marked no more, and others stay marked', async t => {
  const directory = await folder(t)
  const marks = new StartMarks(directory)
  for (const plugin of ['ended', 'settled', 'stopped', 'guilty']) marks.begin(plugin)
  marks.end('ended')
  marks.started('settled', false)
  marks.started('stopped', true)
  marks.forget('stopped')
  t.same(takenIn(directory), ['guilty'])
})

test('a process that ends as it should leaves no mark, and a start that comes late makes none', async t => {
  const directory = await folder(t)
  const marks = new StartMarks(directory)
  marks.begin('early')
  marks.close()
  marks.begin('late')
  marks.started('late', true)
  t.same(await readdir(directory), [])
})

test('two deaths in a row quarantine what had just started at both, also where every process has the same id', async t => {
  const directory = await folder(t)
  const boot = (): string[] => {
    const marks = new StartMarks(directory)
    const off = [...marks.takeCrashed().keys()]
    for (const plugin of ['one', 'two']) {
      marks.begin(plugin)
      marks.started(plugin, true)
    }
    return off
  }
  t.same(boot(), [])
  t.same(boot(), [], 'one death alone may have been a machine that was switched off')
  t.same(boot(), ['one', 'two'])
})

/** A boot of the platform: what it keeps off, and its marks of a plugin that runs. */
function bootWith(
  directory: string,
  plugin: string
): { readonly off: readonly string[]; readonly marks: StartMarks } {
  const marks = new StartMarks(directory)
  const off = [...marks.takeCrashed().keys()]
  marks.begin(plugin)
  marks.started(plugin, true)
  return { off, marks }
}

test('a plugin that was stopped after a death, or lived through its end, is not convicted by the next death alone', async t => {
  for (const acquit of ['forget', 'close'] as const) {
    const directory = await folder(t)
    t.same(bootWith(directory, 'one').off, [])
    const second = bootWith(directory, 'one')
    t.same(second.off, [])
    if (acquit === 'forget') second.marks.forget('one')
    else second.marks.close()
    t.same(bootWith(directory, 'one').off, [], `${acquit}: nothing had died with it`)
    t.same(bootWith(directory, 'one').off, [], `${acquit}: one death`)
    t.same(bootWith(directory, 'one').off, ['one'], `${acquit}: two in a row`)
  }
})

test('what has settled is marked no more, and is no suspect any more', async t => {
  const directory = await folder(t)
  bootWith(directory, 'one')
  const marks = new StartMarks(directory, 20)
  t.same([...marks.takeCrashed().keys()], [])
  marks.begin('one')
  marks.started('one', true)
  await until(async () => (await readdir(directory)).length === 0, 'neither mark nor suspicion is left')
})

test('a disk that is full keeps no plugin from starting or stopping', async t => {
  const directory = await folder(t)
  for (const name of [`starting-${here}-${process.pid}`, 'suspects'])
    await symlink('/dev/full', join(directory, name))
  const marks = new StartMarks(directory)
  t.doesNotThrow(() => {
    marks.begin('one')
    marks.started('one', true)
    marks.begin('two')
    marks.forget('one')
  })
})

test('a process that has marked nothing ends as it should, and a folder that is gone is an error', async t => {
  const directory = await folder(t)
  t.doesNotThrow(() => new StartMarks(directory).close())
  const marks = new StartMarks(directory)
  await rm(directory, { recursive: true })
  t.throws(() => marks.begin('one'), { code: 'ENOENT' })
})

test('a mark of another machine counts after four minutes, and other files never', async t => {
  const directory = await folder(t)
  const file = join(directory, 'starting-other-host-1')
  await writeFile(file, 'far\n')
  await writeFile(join(directory, 'starting-other-host-x'), 'odd\n')
  const aged = async (seconds: number): Promise<string[]> => {
    const then = new Date(Date.now() - seconds * 1000)
    await utimes(file, then, then)
    return takenIn(directory)
  }
  t.same(await aged(230), [])
  t.same(await aged(250), ['far'])
  t.same(await readdir(directory), ['starting-other-host-x'])
})
