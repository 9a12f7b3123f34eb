import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { readSwap } from '../admission/admission-readings.js'
import { machineWarnings } from '../admission/machine-warnings.js'

const gib = 2 ** 30
const disk = { what: 'the disk of BUSBAR_DIR', path: '/data', freeBytes: 50 * gib, isEngines: false }
const machine = { memoryBytes: 8 * gib, availableBytes: 4 * gib, disks: [disk] }
const swap = { totalBytes: 2 * gib, freeBytes: 2 * gib }
const codes = (
  more: Partial<typeof machine> | { availableBytes: undefined },
  free: typeof swap | undefined = swap
): string[] => machineWarnings({ ...machine, ...more }, free, gib).map(({ code }) => code)

test('a machine with room is warned of nothing', t => {
  t.same(codes({}), [])
  t.same(codes({}, { totalBytes: 0, freeBytes: 0 }), [], 'with much memory it needs no swap')
  t.end()
})

test('memory that is nearly used up is named', t => {
  t.same(codes({ availableBytes: 0.3 * gib }), ['memory_low'])
  t.same(codes({ availableBytes: undefined }), [], 'of an engine on another machine nothing is known')
  t.end()
})

test('a small machine without swap, and swap that is nearly used up, are named', t => {
  const small = { memoryBytes: 2 * gib, availableBytes: gib }
  t.same(codes(small, { totalBytes: 0, freeBytes: 0 }), ['swap_missing'])
  t.same(codes(small, { totalBytes: 2 * gib, freeBytes: 0.1 * gib }), ['swap_low'])
  t.same(codes(small), [])
  t.same(machineWarnings({ ...machine, ...small }, undefined, gib), [], 'where it cannot be read')
  t.end()
})

test('a disk near the floor is named, with whose it is and what helps', t => {
  const engines = { ...disk, what: 'the disk of the Docker Engine', path: '/var/lib/docker', isEngines: true }
  const warnings = machineWarnings(
    {
      ...machine,
      disks: [
        { ...disk, freeBytes: 1.9 * gib },
        { ...engines, freeBytes: gib },
        { ...engines, freeBytes: 2 * gib }
      ]
    },
    swap,
    gib
  )
  t.match(warnings, [
    { code: 'disk_low', message: /1\.9 GiB are free on the disk of BUSBAR_DIR \(\/data\)/ },
    { code: 'engine_disk_low', message: /\/var\/lib\/docker/, remedy: /GET \/api\/docker\/overview/ }
  ])
  t.equal(warnings.length, 2)
  t.end()
})

test('swap is read from the kernel', async t => {
  const root = await mkdtemp(join(tmpdir(), 'busbar-swap-'))
  t.teardown(async () => await rm(root, { recursive: true }))
  t.equal(await readSwap(root), undefined)
  await mkdir(join(root, 'proc'))
  await writeFile(
    join(root, 'proc/meminfo'),
    'MemTotal: 1 kB\nSwapTotal:       2048 kB\nSwapFree:        1024 kB\n'
  )
  t.same(await readSwap(root), { totalBytes: 2048 * 1024, freeBytes: 1024 * 1024 })
})
