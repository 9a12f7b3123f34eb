import { test } from 'tap'
import { currentPlugin, inConnection } from '../../core/frames/frames.js'
import { handedService, handedTo, handing } from '../../core/frames/handed-errors.js'

const failed = async (work: () => unknown): Promise<object> => {
  try {
    await work()
  } catch (error) {
    return error as object
  }
  throw new Error('it did not fail')
}

test('what a call fails with, at once or later, is noted as handed to the plugin', async t => {
  const error = new Error('no')
  for (const call of [
    () => {
      throw error
    },
    async () => await Promise.reject(error)
  ]) {
    const plugin = `shop-${call.constructor.name}`
    t.equal(await failed(() => handing(plugin, call)), error)
    t.equal(handedTo(error), plugin)
  }
  t.equal(handedTo(new Error('of nobody')), undefined)
  t.equal(
    handing('shop', () => 5),
    5
  )
  await t.rejects(handing('shop', async () => await Promise.reject(null)) as Promise<unknown>)
})

test('a query is run, and fails, when it is awaited; a copy of it too', async t => {
  const original = {
    runs: 0,
    // biome-ignore lint/suspicious/noThenProperty: as a builder of knex
    async then(fulfilled: () => void, rejected: () => void): Promise<void> {
      this.runs++
      await Promise.reject(new Error('no')).then(fulfilled, rejected)
    },
    clone() {
      return { ...original }
    }
  }
  const query = { ...original }
  const given = handing('shop', () => query) as typeof query
  t.equal(given, query)
  const copy = given.clone()
  t.equal(query.runs, 0)
  t.equal(handedTo(await failed(async () => await given)), 'shop')
  t.equal(handedTo(await failed(async () => await copy)), 'shop')
  t.equal(query.runs, 1)
})

test('a call runs in the frame of its plugin, and keeps that of a connection of it', t => {
  const frame = { plugin: 'shop', connection: undefined }
  t.equal(handing('shop', currentPlugin), 'shop')
  inConnection({ plugin: 'kernel', connection: undefined }, () => {
    t.equal(handing('shop', currentPlugin), 'shop')
  })
  inConnection(frame, () => {
    t.equal(handing('shop', currentPlugin), 'shop')
  })
  t.end()
})

test('a service has the same methods each time, and those that come later', async t => {
  const service: Record<string, () => unknown> = Object.freeze({
    fail: async () => await Promise.reject(new Error('no')),
    who: () => currentPlugin()
  })
  const given = handedService('shop', service)
  t.equal(given.fail, given.fail)
  t.equal(given.who?.(), 'shop')
  t.equal(handedTo(await failed(async () => await given.fail?.())), 'shop')
  t.same(Object.keys(given), ['fail', 'who'])
  const growing: Record<string, () => unknown> = {}
  const later = handedService('shop', growing)
  growing.more = () => 7
  t.equal(later.more?.(), 7)
})
