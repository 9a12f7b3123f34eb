import { test } from 'tap'
import { faultOf } from '../../core/frames/fault.js'
import { framed } from '../../core/frames/framed.js'
import { currentPlugin } from '../../core/frames/frames.js'

class Base {
  inherited(): string | undefined {
    return currentPlugin()
  }
}

class Given extends Base {
  count = 1
  who(): string | undefined {
    return currentPlugin()
  }
  owner(): number {
    return this.count
  }
  get size(): string | undefined {
    return currentPlugin()
  }
  add(by: number): void {
    this.count += by
  }
}

test('what a plugin gives runs in its name for every caller, with its own this, and is the same each time', t => {
  const given = new Given()
  const value = framed('shop', given)
  t.equal(currentPlugin(), undefined)
  t.same([value.who(), value.inherited(), value.size], ['shop', 'shop', 'shop'])
  const { who, owner, add } = value
  t.same([who(), owner()], ['shop', 1], 'also without its object')
  add(2)
  t.same([value.count, given.count], [3, 3])
  t.equal(value.who, who, 'listeners that are methods can be taken away again')
  t.not(value.who, value.inherited)
  t.end()
})

test('a function runs in the name of its plugin, and what is neither is passed on as it is', t => {
  const add = framed('shop', (a: number, b: number) => [a + b, currentPlugin()])
  t.same(add(1, 2), [3, 'shop'])
  const list = [() => currentPlugin()]
  for (const value of [1, 'text', null, undefined, true, list]) t.equal(framed('shop', value), value)
  t.end()
})

test('what a plugin throws is an error, at once and later', async t => {
  const value = framed('shop', {
    now: () => {
      throw null
    },
    later: async () => await Promise.reject('soon'),
    error: () => {
      throw new TypeError('its own')
    },
    fine: async () => 7
  })
  t.throws(() => value.now(), {
    message: 'something that is not an error was thrown by the plugin "shop": null'
  })
  await t.rejects(value.later(), { message: /thrown by the plugin "shop": 'soon'/ })
  t.throws(() => value.error(), { name: 'TypeError', message: 'its own' })
  t.equal(await value.fine(), 7)
})

test('it looks like what the plugin gave, of a frozen object too, and cannot be changed', t => {
  const given = Object.freeze({ name: 'clock', time: () => 1 })
  const value = framed('shop', given)
  t.same(Object.keys(value), ['name', 'time'])
  t.equal('name' in value, true)
  t.equal('other' in value, false)
  t.equal(value.name, 'clock')
  t.equal(value.time(), 1)
  t.throws(() => Object.assign(value, { name: 'other' }), TypeError)
  t.equal(given.name, 'clock')
  t.ok(framed('shop', new Given()) instanceof Given)
  t.equal(Object.getOwnPropertyDescriptor(value, 'other'), undefined)
  t.end()
})

test('what is thrown is shown shortly, however much of it there is', async t => {
  const large = Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`key${at}`, at]))
  t.match(faultOf(large), { message: 'something that is not an error was thrown: an object of many keys' })
  t.match(faultOf({ a: 1 }), { message: 'something that is not an error was thrown: { a: 1 }' })
  t.match(faultOf(new Array(5000).fill(7)).message, /^something that is not an error was thrown: \[/)
  t.match(faultOf(new Uint8Array(5000)).message, /^something that is not an error was thrown: Uint8Array/)
  // Each character of it is a key.
  t.match(faultOf(Object('x'.repeat(5000))), {
    message: 'something that is not an error was thrown: an object of many keys'
  })
  t.match(faultOf(Object('short')).message, /\[String: 'short'\]$/)
})
