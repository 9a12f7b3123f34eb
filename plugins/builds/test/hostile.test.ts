import { engineTest } from '../../runtime-docker/test/lab.js'
import { gitServer, rawRepository, recorder } from './kit.js'
import { gitSource, setUp } from './preparation-lab.js'

const mebibyte = 2 ** 20

engineTest(
  'a repository that is larger than it may be leaves nothing, on the disk or on the engine',
  async t => {
    const { prepare, leftovers, lab, applicationId } = await setUp(t, {
      limits: { checkoutBytes: 20 * mebibyte }
    })
    const url = await rawRepository(t, ({ blob, tree }) =>
      tree([
        ['100644', blob('FROM busybox:lab\nCOPY . /app\n'), 'Dockerfile'],
        ['100644', blob(Buffer.alloc(21 * mebibyte)), 'video.mp4']
      ])
    )
    await t.rejects(prepare(gitSource(url)), {
      code: 'E_SOURCE_SIZE',
      message:
        /larger than 20 MiB, the checkout_mib of the builds plugin: take large files out of it or raise the limit/
    })
    t.same(await leftovers(), [])
    t.same(await lab.runtime.images({ applicationId }), [])
  }
)

engineTest('a large context that is allowed goes through without being held', async t => {
  const { prepare, leftovers } = await setUp(t)
  const size = 200 * mebibyte
  const url = await rawRepository(t, ({ blob, tree }) =>
    tree([
      [
        '100644',
        blob('FROM busybox:lab\nCOPY video.mp4 /app/\nRUN stat -c %s /app/video.mp4\n'),
        'Dockerfile'
      ],
      ['100644', blob(Buffer.alloc(size)), 'video.mp4']
    ])
  )
  // What the test itself took to make the repository is not counted.
  const before = process.memoryUsage().rss
  let most = 0
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 20)
  t.teardown(() => clearInterval(watch))
  const context = recorder()
  await prepare(gitSource(url), {}, context)
  t.match(context.text(), String(size))
  t.ok(
    most - before < size / 2,
    `${Math.round((most - before) / mebibyte)} MiB more while ${size / mebibyte} MiB went through`
  )
  t.same(await leftovers(), [])
})

engineTest(
  'files whose names differ in case alone, are long, or hold a newline are built; one that is no text is left out and named',
  async t => {
    const { prepare, leftovers } = await setUp(t)
    const url = await rawRepository(t, ({ blob, tree }) =>
      tree([
        [
          '100644',
          blob(
            'FROM busybox:lab\nCOPY . /app\nRUN cd /app && find . -type f -print0 | tr "\\n\\0" "|\\n" | sort | sed "s/^/found /"\n'
          ),
          'Dockerfile'
        ],
        ['100644', blob('1'), 'README'],
        ['40000', tree([['100644', blob('2'), 'x']]), 'Readme'],
        ['100644', blob('3'), 'line\nbreak'],
        ['100644', blob('4'), 'n'.repeat(255)],
        ['100644', blob('5'), 'readme'],
        ['40000', tree([['100644', blob('6'), 'y']]), Buffer.from([0x64, 0xff])],
        ['100644', blob('7'), Buffer.from([0x74, 0xfe])],
        ['100644', blob('8'), 'u\uFFFD']
      ])
    )
    const context = recorder()
    await prepare(gitSource(url), {}, context)
    const found = context.lines.map(({ msg }) => msg).filter(msg => msg.startsWith('found '))
    t.same(
      found,
      ['Dockerfile', 'README', 'Readme/x', 'line|break', 'n'.repeat(255), 'readme', 'u\uFFFD'].map(
        name => `found ./${name}`
      )
    )
    t.match(
      context.lines.find(({ level }) => level === 'warning')?.msg,
      /^2 files or directories are left out of the build, because their names are not UTF-8: "d\uFFFD", "t\uFFFD"; rename them$/
    )
    t.same(await leftovers(), [])
  }
)

engineTest(
  'a Dockerfile that is missing beside a directory whose name is no text is said to be missing',
  async t => {
    const { prepare } = await setUp(t)
    const url = await rawRepository(t, ({ blob, tree }) =>
      tree([
        ['40000', tree([['100644', blob('6'), 'y']]), Buffer.from([0x64, 0xff])],
        ['100644', blob('x'), 'prod.Dockerfile']
      ])
    )
    await t.rejects(prepare(gitSource(url)), {
      code: 'E_SOURCE_DOCKERFILE',
      message: /found were: prod\.Dockerfile/
    })
  }
)

engineTest(
  'links lead nowhere out of the tree: not as the Dockerfile, the ignore file or the root directory',
  async t => {
    const { prepare, leftovers } = await setUp(t)
    const server = await gitServer(t)
    const { url } = await server.createRepository('links', {
      Dockerfile: { symlink: '/etc/passwd' },
      'sub/Dockerfile': 'FROM busybox:lab\nCOPY . /app\n',
      'sub/.dockerignore': { symlink: `${'../'.repeat(40)}etc/passwd` },
      'near/Dockerfile': { symlink: '../sub/Dockerfile' },
      root: { symlink: '/' },
      chain: { symlink: 'root/etc' }
    })
    await t.rejects(prepare(gitSource(url)), {
      code: 'E_SOURCE_LINK',
      message: /^Dockerfile is a symbolic link that leads out/
    })
    await t.rejects(prepare(gitSource(url, { rootDirectory: 'sub' })), {
      code: 'E_SOURCE_LINK',
      message: /^\.dockerignore is a symbolic link/
    })
    await t.rejects(
      prepare(gitSource(url, { rootDirectory: 'near' })),
      { code: 'E_SOURCE_LINK' },
      'the root directory is the tree then'
    )
    for (const rootDirectory of ['root', 'root/tmp', 'chain'])
      await t.rejects(prepare(gitSource(url, { rootDirectory })), { code: 'E_SOURCE_LINK' }, rootDirectory)
    await t.rejects(prepare(gitSource(url, { dockerfilePath: 'chain/passwd' })), { code: 'E_SOURCE_LINK' })
    t.same(await leftovers(), [])
  }
)
