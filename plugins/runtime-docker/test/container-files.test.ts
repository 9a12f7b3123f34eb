import { randomBytes } from 'node:crypto'
import { access } from 'node:fs/promises'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { extract, pack } from 'tar-stream'
import { TarEnd } from '../tar-end.js'
import { engineTest, type Lab, startLab } from './lab.js'

const forever = new AbortController().signal

async function startWriter(t: Test, script = ''): Promise<{ readonly lab: Lab; readonly id: string }> {
  const lab = startLab(t)
  const network = await lab.runtime.ensureNetwork({ id: lab.projectId, slug: lab.instanceId.slice(0, 8) })
  const stays = 'trap "exit 0" TERM; while true; do sleep 0.1; done'
  const id = await lab.runtime.create(
    lab.spec('files', network, {
      readonlyRootfs: false,
      caps: 'standard',
      volumes: [{ volume: `busbar-test-${lab.projectId}`, path: '/data' }],
      command: ['sh', '-c', `${script}\ntouch /ready; ${stays}`]
    })
  )
  await lab.runtime.start(id)
  await said(lab, id, 'until [ -e /ready ]; do sleep 0.05; done')
  return { lab, id }
}

async function said(lab: Lab, id: string, script: string): Promise<string> {
  const lines: string[] = []
  await lab.runtime.exec(id, ['sh', '-c', script], {
    onLine: ({ text }) => lines.push(text),
    signal: forever
  })
  return lines.join('\n')
}

function tarOf(files: Readonly<Record<string, string>>): Readable {
  const tar = pack()
  for (const [name, content] of Object.entries(files)) tar.entry({ name, uid: 1000, gid: 1000 }, content)
  tar.finalize()
  return Readable.from(tar)
}

async function filesIn(tar: Readable): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for await (const entry of tar.pipe(extract()))
    files[entry.header.name] = String(await buffer(entry as unknown as Readable))
  return files
}

engineTest(
  'files are put into a running container and read from it, in its root and its volumes',
  async t => {
    const { lab, id } = await startWriter(t, 'mkdir -p /work')
    await lab.runtime.putFiles(id, '/work', tarOf({ 'a/b': 'hello', c: 'x' }), { signal: forever })
    t.equal(await said(lab, id, 'cat /work/a/b; echo; stat -c %u /work/a/b'), 'hello\n1000')
    await lab.runtime.putFiles(id, '/data', tarOf({ d: 'stored' }), { signal: forever })
    t.equal(await said(lab, id, 'cat /data/d'), 'stored')

    await said(lab, id, 'echo more > /work/c; head -c 3000000 /dev/zero > /data/large')
    t.match(await filesIn(await lab.runtime.getFiles(id, '/work', { signal: forever })), {
      'work/a/b': 'hello',
      'work/c': 'more\n'
    })
    const large = await filesIn(await lab.runtime.getFiles(id, '/data/large', { signal: forever }))
    t.equal(large.large?.length, 3_000_000)
  }
)

engineTest('what is not there, cannot be written, or is no tar is told apart', async t => {
  const { lab, id } = await startWriter(t, 'mkdir /work; echo x > /file')
  const large = (): Readable => tarOf({ large: 'x'.repeat(4 * 2 ** 20) })
  await t.rejects(lab.runtime.putFiles(id, '/nowhere', large(), { signal: forever }), {
    status: 404,
    code: 'E_CONTAINER_PATH'
  })
  await t.rejects(lab.runtime.getFiles(id, '/nowhere', { signal: forever }), {
    status: 404,
    code: 'E_CONTAINER_PATH'
  })
  await t.rejects(lab.runtime.putFiles(id, '/file', tarOf({ a: 'x' }), { signal: forever }), {
    code: 'E_CONTAINER_FILES'
  })
  const reason = new Error('the source has gone')
  const broken = Readable.from(
    (async function* () {
      yield (await buffer(tarOf({ a: 'x'.repeat(5000) }))).subarray(0, 1024)
      throw reason
    })()
  )
  await t.rejects(lab.runtime.putFiles(id, '/work', broken, { signal: forever }), reason)
  await t.rejects(
    lab.runtime.putFiles(
      id,
      '/work',
      Readable.from([(await buffer(tarOf({ a: 'x'.repeat(5000) }))).subarray(0, 1024)]),
      { signal: forever }
    ),
    { code: 'E_CONTAINER_FILES' },
    'a tar that ends early'
  )
  await lab.runtime.stop(id, 1)
  await t.rejects(lab.runtime.getFiles(id, '/file', { signal: forever }), { code: 'E_CONTAINER_NOT_RUNNING' })

  const network = await lab.runtime.ensureNetwork({ id: lab.projectId, slug: 'x' })
  const hard = await lab.runtime.create(lab.spec('hard', network))
  await lab.runtime.start(hard)
  await t.rejects(lab.runtime.putFiles(hard, '/etc', tarOf({ a: 'x' }), { signal: forever }), {
    status: 409,
    code: 'E_CONTAINER_READONLY'
  })
  await t.rejects(lab.runtime.getFiles('f'.repeat(64), '/etc', { signal: forever }), {
    code: 'E_CONTAINER_MISSING'
  })
})

engineTest('no link of a container leads out of it', async t => {
  const { lab, id } = await startWriter(
    t,
    'mkdir /work; ln -s / /up; ln -s ../../../../../../../.. /data/up; ln -s /etc/hostname /link'
  )
  const name = `busbar-test-${lab.instanceId}`
  for (const directory of ['/up/tmp', '/data/up/tmp', '/work/../../../tmp'])
    await lab.runtime.putFiles(id, directory, tarOf({ [name]: directory }), { signal: forever })
  t.equal(await said(lab, id, `cat /tmp/${name}`), '/work/../../../tmp')
  const evil = pack()
  evil.entry({ name: 'out', type: 'symlink', linkname: '/../../tmp' })
  evil.entry({ name: `out/${name}-2` }, 'x')
  evil.finalize()
  await lab.runtime.putFiles(id, '/work', Readable.from(evil), { signal: forever }).catch(() => undefined)
  for (const path of [`/tmp/${name}`, `/tmp/${name}-2`]) await t.rejects(access(path), { code: 'ENOENT' })
  t.same(Object.keys(await filesIn(await lab.runtime.getFiles(id, '/link', { signal: forever }))), ['link'])
})

engineTest('a cancel ends what is put and what is read, with its reason', async t => {
  const { lab, id } = await startWriter(t, 'mkdir /work; head -c 50000000 /dev/zero > /large')
  const reason = new Error('cancelled')
  const putting = new AbortController()
  const endless = Readable.from(
    (async function* () {
      yield (await buffer(tarOf({ a: 'x'.repeat(5000) }))).subarray(0, 1024)
      putting.abort(reason)
      await new Promise(() => {})
    })()
  )
  await t.rejects(lab.runtime.putFiles(id, '/work', endless, { signal: putting.signal }), reason)
  t.ok(endless.destroyed)

  const reading = new AbortController()
  const tar = await lab.runtime.getFiles(id, '/large', { signal: reading.signal })
  await t.rejects(
    (async () => {
      for await (const _ of tar) reading.abort(reason)
    })(),
    reason
  )
  const unread = new AbortController()
  const other = await lab.runtime.getFiles(id, '/large', { signal: unread.signal })
  unread.abort(reason)
  await t.rejects(buffer(other), reason)
  const left = await lab.runtime.getFiles(id, '/large', { signal: forever })
  left.destroy()
  t.equal(await said(lab, id, 'echo well'), 'well')
})

engineTest('a file that shrinks while it is read does not make the tar look whole', async t => {
  const { lab, id } = await startWriter(
    t,
    'mkdir /work; head -c 100000000 /dev/zero > /work/large; nc -l -p 9000 -e sh -c ": > /work/large; echo done" &'
  )
  // While it is read the engine runs nothing in it.
  const { host, port } = await lab.runtime.dial(id, 9000)
  const tar = await lab.runtime.getFiles(id, '/work', { signal: forever })
  let isCut = false
  await t.rejects(
    (async () => {
      for await (const _ of tar) {
        if (!isCut) t.equal(await text(connect(port, host)), 'done\n')
        isCut = true
      }
    })(),
    { code: 'E_ENGINE_REFUSED', message: /was cut off before its end/ }
  )
})

test('the end of a tar is found wherever it is cut, and by nothing else', async t => {
  const long = 'n'.repeat(150)
  const whole = await buffer(
    tarOf({ a: 'x'.repeat(5000), [`${long}/${long}`]: 'y', 'ünï/ö': 'z'.repeat(512), empty: '' })
  )
  for (let length = 1; length <= 1200; length += 7) {
    const end = new TarEnd()
    for (let at = 0; at < whole.length; at += length) {
      t.equal(end.isReached, false)
      end.read(whole.subarray(at, at + length))
      if (end.isReached) t.ok(at + length >= whole.length - 1024)
      if (end.isReached) break
    }
    t.ok(end.isReached)
  }
  const isWhole = (bytes: Buffer): boolean => {
    const end = new TarEnd()
    end.read(bytes)
    return end.isReached
  }
  for (let kept = 0; kept < whole.length; kept += 512) t.equal(isWhole(whole.subarray(0, kept)), false)
  t.throws(() => isWhole(Buffer.concat([whole.subarray(0, 5632), randomBytes(2048)])))

  // A size that the header has no room for, and one in base 256.
  const record = Buffer.from('20 size=10000000000\n')
  const header = Buffer.from(whole.subarray(0, 512))
  const pax = Buffer.from(header)
  pax.write('00000000024\0', 124, 'latin1')
  pax.write('x', 156, 'latin1')
  const large = new TarEnd()
  large.read(Buffer.concat([pax, Buffer.concat([record], 512), header, Buffer.alloc(4096)]))
  t.equal(large.isReached, false, 'these are bytes of the file')
  const wide = Buffer.from(header)
  wide.fill(0, 124, 136)
  wide[124] = 0x80
  wide.writeUInt32BE(1024, 132)
  t.equal(isWhole(Buffer.concat([wide, Buffer.alloc(1024)])), false)
  t.equal(isWhole(Buffer.concat([wide, Buffer.alloc(2048)])), true)
})
