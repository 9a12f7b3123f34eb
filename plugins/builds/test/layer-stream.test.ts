import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { openLayer, UnpackBudget } from '../registry/client/index.js'
import { provenLayer } from '../registry/client/layer-stream.js'
import { digestOf, startHandMadeRegistry } from './hand-made-registry.js'
import { failureOf, readerOf } from './registry-client-lab.js'

const mebibyte = 2 ** 20
const plain = Buffer.from('a layer '.repeat(10_000))
const budget = (bytes = 2 ** 30) => new UnpackBudget(bytes)

/** A layer that a registry hands out, ready to be opened. */
async function serve(
  t: Test,
  packed: Buffer,
  {
    unpacked = packed,
    ways = {}
  }: { unpacked?: Buffer; ways?: Parameters<typeof startHandMadeRegistry>[2] } = {}
) {
  const registry = await startHandMadeRegistry(t, undefined, ways)
  const layer = { ...registry.blob(packed), diffId: digestOf(unpacked) }
  const open = (changes: Partial<typeof layer> = {}, options: Parameters<typeof readerOf>[2] = {}) =>
    openLayer(readerOf(t, `${registry.host}/team/app:1`, options), { ...layer, ...changes }, budget())
  return { registry, layer, open }
}

/** What a stream failed by, and what it handed out before. */
async function failed(stream: AsyncIterable<Buffer>) {
  let bytes = 0
  const error = await failureOf(
    (async () => {
      for await (const piece of stream) bytes += piece.length
    })()
  )
  return { bytes, code: error.code, message: error.message }
}

async function* pieces(bytes: Buffer, length: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

test('a layer ends well only when it has its digest and unpacks to its diff id', async t => {
  const packed = gzipSync(plain)
  const { open } = await serve(t, packed, { unpacked: plain })
  t.same(await buffer(open()), packed)
  const other = digestOf(Buffer.from('other'))
  const unpacksOtherwise = await failed(open({ diffId: other }))
  t.match(unpacksOtherwise, {
    code: 'E_IMAGE_BROKEN',
    message: /unpacks to sha256:\w+, and its configuration/
  })
  t.ok(unpacksOtherwise.bytes < packed.length, 'it is never handed out whole')

  const spoilt = Buffer.concat([plain.subarray(1), Buffer.from('!')])
  const { registry, layer, open: openSpoilt } = await serve(t, plain)
  registry.blobAs(layer.digest, spoilt)
  const changed = await failed(openSpoilt())
  t.match(changed, { code: 'E_IMAGE_BROKEN', message: /verification failed.*push the image again/ })
  t.ok(changed.bytes < plain.length)
})

test('the same content packed otherwise is another layer', async t => {
  const [fast, small] = [gzipSync(plain, { level: 1 }), gzipSync(plain, { level: 9 })]
  t.notSame(fast, small)
  const wanted = { digest: digestOf(small), diffId: digestOf(plain) }
  await t.rejects(buffer(provenLayer(pieces(fast, 65_536), wanted, budget())), {
    kind: 'broken',
    message: new RegExp(`the layer ${wanted.digest} came as ${digestOf(fast)}`)
  })
})

test('a layer has as many bytes as its manifest says', async t => {
  const { open, layer, registry } = await serve(t, plain)
  for (const size of [layer.size - 1, layer.size + 1])
    t.match(await failed(open({ size })), {
      code: 'E_IMAGE_BROKEN',
      message: /80000 bytes, and its manifest/
    })
  t.match(await failed(open({ digest: digestOf(Buffer.from('none')) })), {
    code: 'E_IMAGE_BROKEN',
    message: /404/
  })
  t.equal(registry.rangesAsked.length, 2, 'neither is asked for again')

  const chunked = await serve(t, plain, {
    ways: {
      answers: (_request, response) => {
        response.write(plain)
        response.end('more')
        return true
      }
    }
  })
  t.match(await failed(chunked.open()), { code: 'E_IMAGE_BROKEN', message: /more than/ })
  t.match(await failed(chunked.open({ size: plain.length - 10 })), {
    code: 'E_IMAGE_BROKEN',
    message: /more than/
  })
})

test('layers are known by their first bytes, however few come at a time', async t => {
  const proven = async (bytes: Buffer, unpacked: Buffer, length: number) =>
    await buffer(
      provenLayer(pieces(bytes, length), { digest: digestOf(bytes), diffId: digestOf(unpacked) }, budget())
    )
  const small = Buffer.from('x'.repeat(500))
  const packed = gzipSync(small)
  const twice = Buffer.concat([packed, packed])
  const padded = Buffer.concat([packed, Buffer.alloc(1000)])
  for (const length of [1, 3, 1000]) {
    t.same(await proven(small, small, length), small)
    t.same(await proven(packed, small, length), packed)
    t.same(await proven(twice, Buffer.concat([small, small]), length), twice)
    t.same(await proven(padded, small, length), padded)
  }
  for (const tiny of ['', 'x', 'xyz'])
    t.same(await proven(Buffer.from(tiny), Buffer.from(tiny), 2), Buffer.from(tiny))
  for (const bad of [
    packed.subarray(0, -5),
    packed.subarray(0, 3),
    Buffer.concat([packed, Buffer.from('garbage')])
  ])
    await t.rejects(proven(bad, small, 7), { kind: 'broken', message: /does not unpack/ })
  const zstd = Buffer.from('28b52ffd200109000061', 'hex')
  if ('createZstdDecompress' in (await import('node:zlib')))
    t.same(await proven(zstd, Buffer.from('a'), 3), zstd)
  else
    await t.rejects(proven(zstd, Buffer.from('a'), 3), {
      kind: 'packing',
      message: /Node\.js 22\.15 or newer/
    })
})

test('a connection that breaks off is resumed where it ended', async t => {
  const bytes = randomBytes(300_000)
  const { open, layer, registry } = await serve(t, bytes)
  registry.breakOff(layer.digest, [100_000, 0, 50_000])
  t.same(await buffer(open()), bytes)
  t.same(registry.rangesAsked, [0, 100_000, 100_000, 150_000])

  const whole = await serve(t, bytes, { ways: { ignoresRanges: true } })
  whole.registry.breakOff(whole.layer.digest, [100_000, 50_000, 200_000])
  t.same(await buffer(whole.open()), bytes, 'what is here already is skipped')
})

test('one that breaks off again and again is given up after five resumptions', async t => {
  const { open, layer, registry } = await serve(t, randomBytes(300_000))
  registry.breakOff(layer.digest, Array(20).fill(1000))
  t.match(await failed(open()), {
    code: 'E_REGISTRY_UNREACHABLE',
    message: /broke off 6 times, at last after 6000 of 300000 bytes/
  })
  t.same(registry.rangesAsked, [0, 1000, 2000, 3000, 4000, 5000])
})

test('another part than was asked for is no continuation', async t => {
  const bytes = randomBytes(10_000)
  const { open, layer, registry } = await serve(t, bytes, {
    ways: {
      answers: (request, response) => {
        if (request.headers.range === undefined) return false
        response
          .writeHead(206, { 'content-range': 'bytes 0-9999/10000', 'content-length': 10_000 })
          .end(bytes)
        return true
      }
    }
  })
  registry.breakOff(layer.digest, [5000])
  t.match(await failed(open()), { code: 'E_REGISTRY_ANSWER', message: /another part/ })
})

test('what unpacks to more than the image may is ended there, and others have their turns meanwhile', async t => {
  // Each mebibyte of it unpacks to a thousand.
  const zeros = gzipSync(Buffer.alloc(64 * mebibyte))
  const bomb = Buffer.concat(Array(8).fill(zeros))
  const limit = 200 * mebibyte
  let turns = 0
  let isOver = false
  const counting = (async () => {
    while (!isOver) {
      turns++
      await setImmediate()
    }
  })()
  const all = budget(limit)
  const result = await failed(
    provenLayer(pieces(bomb, 65_536), { digest: digestOf(bomb), diffId: digestOf(plain) }, all)
  )
  isOver = true
  await counting
  t.match(result.message, /its layers unpack to more than 200 MiB/)
  t.ok(turns > 200, `${turns} turns for 200 MiB`)
  t.ok(result.bytes < bomb.length)
  const rest = await failed(provenLayer(pieces(gzipSync(plain), 100), { digest: '', diffId: '' }, all))
  t.match(rest.message, /more than 200 MiB/, 'the limit is for all layers together')
})

test('what is packed to more than the image may is ended too', async t => {
  const { layer, registry } = await serve(t, randomBytes(100_000))
  const stream = openLayer(readerOf(t, `${registry.host}/a:1`), layer, budget(50_000))
  t.match(await failed(stream), {
    code: 'E_IMAGE_SIZE',
    message: /^image 127.*too large: its layers are more than/
  })
})

test('no more is taken from a registry than its consumer takes, and waiting for that is not its fault', async t => {
  let sent = 0
  let isReadByUs = true
  const size = 200 * mebibyte
  const piece = Buffer.alloc(mebibyte)
  const { open } = await serve(t, plain, {
    ways: {
      answers: (_request, response) => {
        response.writeHead(200, { 'content-length': size })
        const more = (): void => {
          while (sent < size) {
            sent += piece.length
            isReadByUs = response.write(piece)
            if (!isReadByUs) return
          }
          response.end()
        }
        response.on('drain', more)
        more()
        return true
      }
    }
  })
  const stream = open({ size }, { pace: { seconds: 1, bytesPerSecond: 1000 } })
  await once(stream, 'readable')
  let before = -1
  await until(() => {
    const isStill = sent === before && !isReadByUs
    before = sent
    return isStill || undefined
  }, 'the registry to wait')
  await new Promise(resolve => setTimeout(resolve, 2500))
  t.ok(sent < 100 * mebibyte, `${sent} bytes were sent`)
  t.equal(stream.errored, null)
  t.match(await failed(stream), { code: 'E_IMAGE_BROKEN' }, 'and goes on')
  t.equal(sent, size)
})

test('a registry that stops in the middle is silent, and one that sends drops is slow', async t => {
  const pace = { seconds: 1, bytesPerSecond: 1000 }
  const stops = await serve(t, plain, {
    ways: {
      answers: (_request, response) => {
        response.writeHead(200, { 'content-length': plain.length }).write(plain.subarray(0, 5000))
        return true
      }
    }
  })
  t.match(await failed(stops.open({}, { pace })), {
    code: 'E_REGISTRY_UNREACHABLE',
    message: /did not answer in time.*for 1 seconds nothing came/
  })
  const drips = await serve(t, plain, {
    ways: {
      answers: (_request, response) => {
        response.writeHead(200, { 'content-length': plain.length })
        const timer = setInterval(() => response.write('a'), 50)
        response.once('close', () => clearInterval(timer))
        return true
      }
    }
  })
  t.match(await failed(drips.open({}, { pace })), {
    code: 'E_REGISTRY_SLOW',
    message: /less than 1000 bytes a second for 1 seconds/
  })
})

test('a layer that is not wanted any more leaves its registry, while it waits for it too', async t => {
  let open = 0
  const { open: openIt } = await serve(t, plain, {
    ways: {
      answers: (_request, response) => {
        open++
        response.once('close', () => open--)
        response.writeHead(200, { 'content-length': plain.length }).write(plain.subarray(0, 5000))
        return true
      }
    }
  })
  const stream = openIt({}, { pace: { seconds: 3600, bytesPerSecond: 1 } })
  stream.resume()
  await until(() => open === 1 || undefined, 'the request')
  stream.destroy()
  await until(() => stream.closed || undefined, 'the end of the stream')
  await until(() => open === 0 || undefined, 'the end of the connection')

  const cancel = new AbortController()
  const reason = new Error('cancelled')
  const cancelled = failed(openIt({}, { signal: cancel.signal }))
  await until(() => open === 1 || undefined, 'the request')
  cancel.abort(reason)
  t.equal((await cancelled).message, 'cancelled')
})
