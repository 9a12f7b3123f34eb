import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { isInside } from '../archive/manifest.js'
import { findFiles } from '../files/data-files.js'

test('what a restore would refuse is not put into an archive, and named', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'busbar-files-'))
  t.teardown(async () => await rm(directory, { recursive: true, force: true }))
  await mkdir(join(directory, 'data', 'notes', 'back\\slash'), { recursive: true })
  await mkdir(join(directory, 'plugins'))
  await writeFile(join(directory, 'data', 'notes', 'back\\slash', 'below'), '')
  await writeFile(join(directory, 'data', 'notes', 'C:\\note'), '')
  await writeFile(join(directory, 'data', 'notes', 'kept'), '')
  await symlink('/etc/passwd', join(directory, 'data', 'notes', 'out'))
  const { files, leftOut } = await findFiles(directory)
  t.same(
    files.map(({ path }) => path),
    ['data', 'data/notes', 'data/notes/kept', 'plugins']
  )
  t.ok(files.every(({ path }) => isInside(path)))
  t.same(leftOut, [
    'data/notes/C:\\note, whose name has a backslash',
    'data/notes/back\\slash, whose name has a backslash',
    'the link data/notes/out, which leads out of the data directory'
  ])
})
