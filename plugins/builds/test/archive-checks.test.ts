import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { deflateRawSync, gzipSync } from 'node:zlib'
import type { Exec } from 'busbar/sdk'
import { type Test, test } from 'tap'
import { pack } from 'tar-stream'
import { checkArchives } from '../builders/added-archives.js'
import { addedFiles } from '../dockerfile/added-files.js'
import { parseDockerfile } from '../dockerfile/parse-dockerfile.js'
import { planDockerfile } from '../dockerfile/plan.js'
import { folder, processes, recorder } from './kit.js'

const mebibyte = 2 ** 20

async function tarOf(bytes: number): Promise<Buffer> {
  const tar = pack()
  tar.entry({ name: 'zeros' }, Buffer.alloc(bytes))
  tar.finalize()
  return await buffer(tar)
}

interface Setting {
  readonly limit?: number
  readonly exec?: Exec
  readonly onBuild?: readonly string[]
  readonly links?: Readonly<Record<string, string>>
}

/** What a build with these files and this line in its Dockerfile is refused with. */
async function refusal(
  t: Test,
  line: string,
  files: Readonly<Record<string, Buffer | string>>,
  { limit = 4 * mebibyte, exec = processes(t), onBuild = [], links = {} }: Setting = {}
): Promise<string | undefined> {
  const root = await folder(t)
  const directory = join(root, 'source')
  await mkdir(join(root, 'scratch'))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true })
    await writeFile(join(directory, name), content)
  }
  for (const [name, target] of Object.entries(links)) await symlink(target, join(directory, name))
  const included = new Set(await readdir(directory, { recursive: true }))
  t.ok([...included].every(path => lstatSync(join(directory, path)) !== undefined))
  const plan = planDockerfile(parseDockerfile(`FROM busybox\n${line}\n`), {})
  try {
    await checkArchives(
      addedFiles(plan, () => ({ onBuild })),
      { directory, included, scratch: join(root, 'scratch'), dockerfile: 'Dockerfile' },
      { exec, limit: async () => limit },
      recorder()
    )
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const packedBy = (input: Buffer, program: string, ...options: string[]): Buffer =>
  execFileSync(program, ['-c', ...options], { input, maxBuffer: 64 * mebibyte })

test('an archive is measured whatever memory unpacking it takes, or refused', async t => {
  const large = await tarOf(6 * mebibyte)
  const tooLarge = /unpacks to more than 4 MiB/
  for (const [program, ...options] of [
    ['bzip2'],
    ['xz'],
    ['xz', '--lzma2=dict=256MiB'],
    ['zstd'],
    ['zstd', '--long=28', '--no-content-size']
  ] as const)
    t.match(
      await refusal(t, 'ADD a /x/', { a: packedBy(large, program, ...options) }),
      tooLarge,
      [program, ...options].join(' ')
    )
  for (const [program, ...options] of [
    ['xz', '--lzma2=dict=1GiB'],
    ['zstd', '--ultra', '-1', '--long=30']
  ] as const)
    t.match(
      await refusal(t, 'ADD a /x/', { a: packedBy(large, program, ...options) }),
      /ADDs a, an archive that is damaged/,
      [program, ...options].join(' ')
    )
  const small = await tarOf(mebibyte)
  for (const program of ['bzip2', 'xz', 'zstd']) {
    const packed = packedBy(small, program)
    t.equal(await refusal(t, 'ADD a /x/', { a: packed }), undefined, program)
    t.match(
      await refusal(t, 'ADD a /x/', { a: packed.subarray(0, packed.length - 20) }),
      /ADDs a, an archive that is damaged/,
      `${program}, cut off`
    )
  }
})

test('an archive that takes too long is not called damaged', async t => {
  const exec = processes(t)
  const impatient: Exec = {
    run: async (argv, options) => await exec.run(argv, { ...options, timeoutMs: 1 })
  }
  const a = packedBy(await tarOf(64 * mebibyte), 'xz', '-0')
  t.match(
    await refusal(t, 'ADD a /x/', { a }, { limit: 2 ** 40, exec: impatient }),
    /ADDs a, and how much that unpacks to could not be found out: it took longer than/
  )
})

test('only the archives that an ADD names are looked at', async t => {
  const large = gzipSync(await tarOf(6 * mebibyte))
  const broken = Buffer.concat([gzipSync('x').subarray(0, 10), Buffer.from([0x04, 1, 2, 3, 4])])
  const files = { 'sub/a.bin': 'x', 'sub/b.txt': large, 'test/broken.gz': broken, 'sub/deep/c.bin': large }
  for (const line of [
    'ADD sub/*.bin /x/',
    'ADD ./sub/?.bin /x/',
    'ADD s*b/a* /x/',
    'ADD *.bin /x/',
    'ADD sub/d* /x/',
    'ONBUILD ADD sub/*.bin /x/'
  ])
    t.equal(await refusal(t, line, files), undefined, line)
  for (const line of ['ADD sub/*.txt /x/', 'ADD */?.txt /x/', 'ADD s*/*/*c*.bin /x/', 'ADD sub/b.t?t /x/'])
    t.match(await refusal(t, line, files), /Dockerfile ADDs sub\/\S+, and what it ADDs unpacks/, line)
  for (const line of ['ENV F=b\nADD sub/$F.txt /x/', 'ADD sub/[a-c].txt /x/'])
    t.match(await refusal(t, line, files), /Dockerfile may ADD /, line)
  const links = { link: 'sub/b.txt' }
  t.match(await refusal(t, 'ADD l* /x/', files, { links }), /Dockerfile may ADD /, 'a link')
  const carried = (text: string): Setting => ({ onBuild: [text] })
  t.equal(await refusal(t, 'RUN x', files, carried('ADD sub/a.bin /x/')), undefined)
  t.equal(await refusal(t, 'RUN x', files, carried('COPY . /x/')), undefined)
  t.match(await refusal(t, 'RUN x', files, carried('add ["sub/b.txt", "/x/"]')), /ADDs sub\/b\.txt/)
})

test('a file that only begins like gzip is no archive', async t => {
  const gzip = gzipSync(await tarOf(mebibyte))
  const header = gzip.subarray(0, 10)
  const beginnings: Readonly<Record<string, Buffer>> = {
    'another method': Buffer.from([0x1f, 0x8b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    'nothing behind it': header,
    'no block': Buffer.concat([header, Buffer.from([0x07]), randomBytes(100)]),
    'less than a tar': gzip.subarray(0, 16)
  }
  for (const [what, content] of Object.entries(beginnings))
    t.equal(await refusal(t, 'ADD a /x/', { a: content }), undefined, what)
  const marked = Buffer.from(gzip)
  marked[3] = 0x80
  t.match(await refusal(t, 'ADD a /x/', { a: marked }), /damaged/, 'a flag that some readers pass over')
  // A tar's header comes out of it before the fault.
  const tar = await tarOf(1024)
  const start = deflateRawSync(tar.subarray(0, 1024), { finishFlush: 2 })
  const bent = Buffer.concat([header, start, Buffer.from([0x07, 1, 2, 3])])
  t.match(await refusal(t, 'ADD a /x/', { a: bent }), /damaged/, 'a header of a tar, and a fault')
})
