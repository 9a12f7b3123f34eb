import { execFileSync } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { engineTest } from '../../runtime-docker/test/lab.js'
import { startDockerfileLab } from './dockerfile-lab.js'

const mebibyte = 2 ** 20

async function tarOf(bytes: number, pax?: Record<string, string>): Promise<Buffer> {
  const tar = pack()
  tar.entry({ name: 'zeros', ...(pax !== undefined && { pax }) }, Buffer.alloc(bytes))
  tar.finalize()
  return await buffer(tar)
}

const packedBy = (program: string, tar: Buffer): Buffer =>
  execFileSync(program, ['-c'], { input: tar, maxBuffer: 64 * mebibyte })

engineTest('what an ADD would unpack is measured before, however it is packed and named', async t => {
  const { build, builds } = startDockerfileLab(t)
  const large = await tarOf(6 * mebibyte)
  const small = await tarOf(3 * mebibyte)
  const packings: Readonly<Record<string, (tar: Buffer) => Buffer>> = {
    gzip: gzipSync,
    bzip2: tar => packedBy('bzip2', tar),
    xz: tar => packedBy('xz', tar)
  }
  for (const [packing, packed] of Object.entries(packings)) {
    const { error } = await build({ Dockerfile: 'FROM busybox:lab\nADD a.bin /x/\n', 'a.bin': packed(large) })
    t.match(
      error,
      {
        status: 409,
        code: 'E_BUILD_ARCHIVE',
        message: /^the Dockerfile Dockerfile ADDs a\.bin, and what it ADDs unpacks to more than 4 MiB/
      },
      packing
    )
  }
  const files = { 'sub/a.bin': gzipSync(small), 'sub/b.bin': gzipSync(small) }
  for (const text of [
    'ADD sub/*.bin /x/',
    'ADD ["./sub/../sub/a.bin", "/sub/b.bin", "/x/"]',
    'ENV F=a\nADD sub/$F.bin /x/',
    'ADD sub/a.bin /x/\nADD sub/b.bin /y/',
    'ONBUILD ADD sub/*.bin /x/'
  ]) {
    const { error } = await build({ Dockerfile: `FROM busybox:lab\n${text}\n`, ...files })
    t.match(error, { code: 'E_BUILD_ARCHIVE' }, text)
  }
  const sparse = await tarOf(1024, {
    'GNU.sparse.major': '1',
    'GNU.sparse.minor': '0',
    'GNU.sparse.name': 'zeros',
    'GNU.sparse.realsize': '8000000000000'
  })
  for (const archive of [sparse, gzipSync(sparse)]) {
    const { error } = await build({ Dockerfile: 'FROM busybox:lab\nADD a.bin /x/\n', 'a.bin': archive })
    t.match(error, { code: 'E_BUILD_ARCHIVE', message: /sparse files/ })
  }
  t.equal(builds(), 0, 'the engine has seen none of them')
})

engineTest('what is no archive, is small, or is copied, is built as ever', async t => {
  const { build } = startDockerfileLab(t)
  const large = gzipSync(await tarOf(6 * mebibyte))
  const { error, log } = await build({
    Dockerfile: [
      'FROM busybox:lab',
      'COPY large.tar.gz /x/',
      'ADD sub /y',
      'ADD small.tar text.gz /z/',
      'RUN ls -R /x /y /z',
      ''
    ].join('\n'),
    'large.tar.gz': large,
    'sub/large.tar.gz': large,
    'small.tar': await tarOf(1024),
    'text.gz': gzipSync('x'.repeat(8 * mebibyte))
  })
  t.equal(error?.message, undefined)
  t.match(log, '/x:\nlarge.tar.gz\n\n/y:\nlarge.tar.gz\n\n/z:\ntext.gz\nzeros')
})
