import { test } from 'tap'
import { countCommand, readCounts } from '../files/file-count.js'
import { readOpenFiles, readProcesses } from '../files/open-files.js'

test('what is open counts by its blocks, what is only mapped by its range, and nothing twice', async t => {
  const output = `d 64768
d 139
n 3
f 2048 7 139
f 16 8 64768
f 0 9 139
m 4194304 00:8b 7
m 2097152 fd:00 10
m 1048576 00:01 11
`
  t.same(readOpenFiles(output), { files: 4, bytes: 2048 * 512 + 16 * 512 + 2 * 2 ** 20, isCut: false })
  t.same(readOpenFiles(''), { files: 0, bytes: 0, isCut: false })
  t.same(readOpenFiles('n 1\nf 2 7 139\nlate\n'), { files: 1, bytes: 1024, isCut: true })
  t.match(readOpenFiles('n 500000\nf 2 7 139\n'), { files: 500_000 }, 'more than are told')
  const large = 'd 1152921504606846976\n'
  t.same(readOpenFiles(large), { files: 0, bytes: 0, isCut: false })
})

test('processes are those of the container whose control group they are in', async t => {
  const [one, two] = ['a'.repeat(64), 'b'.repeat(64)]
  const output = `/proc/5/cgroup:${one}\n/proc/6/cgroup:${two}\n/proc/7/cgroup:${one}\n/proc/7/cgroup:${two}\nnonsense\n`
  t.same(
    [...readProcesses(output)],
    [
      [one, ['5', '7']],
      [two, ['6']]
    ]
  )
})

test('counts are read in the order of the folders', async t => {
  const output = `3 r d 8 5.
10 o f 0 1.
600 o f 24 600.
1 o l 0 0.
end
2 r f 8 1.
1 r f 8
1 late
end
unseen
end
`
  t.same(readCounts(output), [
    {
      names: 614,
      inodes: 15,
      recent: 3,
      bytes: 3 * 9 * 512 + 10 * 512 + 25 * 512 + 512,
      recentBytes: 3 * 9 * 512,
      isCut: false,
      isUnseen: false
    },
    {
      names: 2,
      inodes: 2,
      recent: 2,
      bytes: 2 * 9 * 512,
      recentBytes: 2 * 9 * 512,
      isCut: true,
      isUnseen: false
    },
    { names: 0, inodes: 0, recent: 0, bytes: 0, recentBytes: 0, isCut: false, isUnseen: true }
  ])
  const limits = { most: 7, since: new Date(1_500), eachMs: 2500, allMs: 9001 }
  const command = countCommand(['/a b', '/c'], limits)
  t.same(command.slice(3), ['sh', '7', '@1.500', '2.500', '10', '/a b', '/c'])
})
