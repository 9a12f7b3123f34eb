import { statfs } from 'node:fs/promises'
import { ShortDisk, whileRoom } from 'busbar/sdk/disk'
import { test } from 'tap'
import { floorOf } from '../../sdk/disk/disk-floor.js'

const mebibyte = 1024 ** 2
const { bavail, blocks, bsize } = await statfs('.')
const room = bavail * bsize - floorOf(blocks * bsize)

/** Pieces that say how long they are, and take no memory. */
async function* pieces(...lengths: readonly number[]): AsyncGenerator<Uint8Array> {
  for (const length of lengths) yield { length } as Uint8Array
}

/** How long the pieces are that pass, and why no more do. */
async function passing(
  content: AsyncIterable<Uint8Array>,
  written: () => number
): Promise<{ readonly passed: readonly number[]; readonly error: unknown }> {
  const passed: number[] = []
  try {
    for await (const { length } of whileRoom(content, '.', written)) passed.push(length)
    return { passed, error: null }
  } catch (error) {
    return { passed, error }
  }
}

test('a twentieth of a disk is left free, and a gibibyte of a large one', async t => {
  t.equal(floorOf(2 * mebibyte), 104_857)
  t.equal(floorOf(10 * 1024 * mebibyte), 512 * mebibyte)
  t.equal(floorOf(2 ** 44), 1024 * mebibyte)
})

test('what there is room for passes', async t => {
  t.same(await passing(pieces(1, 20 * mebibyte, 0, 3), () => 0), {
    passed: [1, 20 * mebibyte, 0, 3],
    error: null
  })
})

test('the piece that would take the floor does not pass, and what is not written yet counts', async t => {
  const most = Math.ceil(room * 0.6)
  const { passed, error } = await passing(pieces(most, most, 1), () => 0)
  t.same(passed, [most])
  t.type(error, ShortDisk)
  t.match(error, {
    message: /^the disk of \. is full: [\d.]+ MiB are free, and backups leave [\d.]+ MiB, as the database/
  })
})

test('what is written does not count twice', async t => {
  let written = 0
  async function* taken(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < 3; at++) {
      yield { length: Math.ceil(room * 0.6) } as Uint8Array
      written += Math.ceil(room * 0.6)
    }
  }
  t.match(await passing(taken(), () => written), { passed: { length: 3 }, error: null })
})

test('a folder that is not there is told of', async t => {
  const content = whileRoom(pieces(1), './no-such-folder', () => 0)
  await t.rejects(content.next(), { code: 'ENOENT' })
})
