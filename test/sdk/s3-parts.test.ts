import { randomBytes } from 'node:crypto'
import { test } from 'tap'
import { s3Bucket, s3Keys, startS3Server } from '../../lab/s3-server.js'
import { S3Bucket } from '../../sdk/s3/index.js'
import { even, growing, mostParts, type PartPlan, partsOf, planFor, planOf } from '../../sdk/s3/parts.js'

const mebibyte = 2 ** 20
const gibibyte = 2 ** 30

test('parts grow, and 10 000 of them take a dump of 484 GiB', async t => {
  t.equal(growing.bytesOf(1), 16 * mebibyte, 'a short upload has small ones')
  let total = 0
  for (let number = 1; number <= mostParts; number++) {
    const bytes = growing.bytesOf(number)
    t.ok(bytes >= growing.bytesOf(Math.max(1, number - 1)) && bytes <= growing.memory, `part ${number}`)
    total += bytes
  }
  t.equal(total, growing.longest)
  t.equal(Math.floor(total / gibibyte), 484)
  t.ok(growing.memory <= 64 * mebibyte, 'and hold no more than that in memory')
})

test('a store that takes parts of one length only is given such', async t => {
  for (const host of ['account.r2.cloudflarestorage.com', 'account.eu.r2.cloudflarestorage.com:443']) {
    const plan = planFor(host)
    t.equal(plan.bytesOf(1), plan.bytesOf(mostParts), host)
    t.equal(Math.floor(plan.longest / gibibyte), 312)
    t.notOk(plan.takesAll(mostParts))
  }
  for (const host of ['s3.eu-central-1.amazonaws.com', 'r2.cloudflarestorage.com.example.com'])
    t.equal(planFor(host), growing, host)
  t.ok(even.memory <= growing.memory)
})

/** Bytes that differ by their place, in pieces of a length. */
async function* content(total: number, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < total; at += pieceBytes)
    yield Buffer.from(Array.from({ length: Math.min(pieceBytes, total - at) }, (_, n) => (at + n) % 251))
}

/** Takes parts as an upload does: each is read when the next one has been asked for, unless that takes all of the memory. */
async function uploaded(plan: PartPlan, total: number, pieceBytes: number): Promise<Buffer[]> {
  const sent: Buffer[] = []
  let sending: Buffer | undefined
  const finish = (): void => {
    if (sending !== undefined) sent.push(Buffer.from(sending))
    sending = undefined
  }
  let number = 0
  for await (const part of partsOf(content(total, pieceBytes), plan)) {
    finish()
    sending = part
    number++
    if (plan.takesAll(number + 1)) finish()
  }
  finish()
  return sent
}

test('parts that grow are the content, whatever pieces it comes in', async t => {
  const plan = planOf(
    [
      { last: 3, bytes: 4 },
      { last: 6, bytes: 8 },
      { last: 9, bytes: 16 }
    ],
    16
  )
  for (const total of [0, 1, 4, 5, 12, 13, 36, 37, 52, 60, 84])
    for (const pieceBytes of [1, 3, 7, 16, 100]) {
      const sent = await uploaded(plan, total, pieceBytes)
      const whole = await uploaded(planOf([{ last: 1, bytes: 200 }], 400), total, pieceBytes)
      t.same(Buffer.concat(sent), Buffer.concat(whole), `${total} bytes in pieces of ${pieceBytes}`)
      t.same(
        sent.slice(0, -1).map(({ length }) => length),
        sent.slice(0, -1).map((_, at) => plan.bytesOf(at + 1))
      )
    }
})

test(
  'a part that is sent again is what it was, however long the next ones are',
  { timeout: 60_000 },
  async t => {
    const s3 = await startS3Server(t)
    const plan = planOf(
      [
        { last: 2, bytes: 4_000 },
        { last: 5, bytes: 8_000 },
        { last: 8, bytes: 16_000 }
      ],
      16_000
    )
    t.equal(plan.longest, 80_000)
    const settings = {
      endpoint: s3.host,
      region: 'us-east-1',
      bucket: s3Bucket,
      useSsl: false,
      accessKey: s3Keys.access_key,
      secretKey: s3Keys.secret_key
    }
    const cut = new Set<number>()
    s3.fault = ({ part }) => {
      if (part === null || cut.has(part)) return undefined
      cut.add(part)
      return 'cut'
    }
    const bytes = randomBytes(79_000)
    const { signal } = new AbortController()
    const pieces = async function* () {
      for (let at = 0; at < bytes.length; at += 1_000) yield bytes.subarray(at, at + 1_000)
    }
    await new S3Bucket(settings, { plan }).put('grown', pieces(), { signal })
    t.equal(cut.size, 8)
    t.ok(s3.objects.get('grown')?.equals(bytes))

    await t.test('what is too long is told with how much is taken: at once where that is known', async t => {
      const before = s3.requests.length
      await t.rejects(new S3Bucket(settings).put('long', pieces(), { signal, bytes: 485 * gibibyte }), {
        message: `it is longer than 484 GiB, the most that is uploaded to ${s3.host}: keep it on a disk, or make it smaller`
      })
      t.equal(s3.requests.length, before)
      const more = async function* () {
        yield* pieces()
        yield* pieces()
      }
      await t.rejects(
        new S3Bucket(settings, { plan }).put('more', more(), { signal }),
        /it is longer than 0 GiB/
      )
      t.same(s3.uploads(), [], 'and leaves nothing')
      await new S3Bucket(settings, { plan }).put('known', pieces(), { signal, bytes: bytes.length })
      t.ok(s3.objects.get('known')?.equals(bytes))
    })
  }
)
