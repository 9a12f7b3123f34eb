import { extensionPoint, service } from 'busbar/sdk'
import { test } from 'tap'
import { currentPlugin } from '../../core/frames/frames.js'
import { ServiceRegistry } from '../../core/services/registry.js'
import { RunEnd } from '../../core/services/while-running.js'

interface Clocks {
  time(): unknown
}
const clocks = service<Clocks>('clocks.main')
const hands = extensionPoint<number>('clocks.hands')
const giver = (plugin: string) => ({ plugin, run: {} })

test('a handle stays the same while what is behind it comes, changes and goes', t => {
  const registry = new ServiceRegistry()
  const handle = registry.handle('clocks.main') as Clocks
  t.equal(registry.isProvided('clocks.main'), false)
  const first = giver('clocks')
  registry.provide(first, clocks, { time: () => [1, currentPlugin()] })
  t.same(handle.time(), [1, 'clocks'], 'in the frame of its plugin')
  t.equal(registry.isProvided('clocks.main'), true)
  t.equal(registry.providerRun('clocks.main'), first.run)
  const second = giver('clocks')
  registry.provide(second, clocks, { time: () => 2 })
  t.equal(handle.time(), 2)
  registry.withdraw(first.run)
  t.equal(handle.time(), 2, 'the run before has nothing left to take away')
  registry.withdraw(second.run)
  t.throws(() => handle.time(), { status: 503, code: 'E_PLUGIN_OFF', message: /"clocks" is off/ })
  t.equal(registry.isProvided('clocks.main'), false)
  t.equal(registry.handle('clocks.main'), handle)
  t.end()
})

test('a service has one provider, and another may provide it when that one is gone', t => {
  const registry = new ServiceRegistry()
  const first = giver('clocks')
  registry.provide(first, clocks, { time: () => 1 })
  t.throws(
    () => registry.provide(giver('other'), clocks, { time: () => 2 }),
    /"clocks\.main" is already provided by the plugin "clocks"/
  )
  registry.withdraw(first.run)
  registry.provide(giver('other'), clocks, { time: () => 2 })
  t.equal((registry.handle('clocks.main') as Clocks).time(), 2)
  t.end()
})

test('a handle has the methods of the class, and neither then nor what is no method', t => {
  class Base {
    base(): string {
      return 'base'
    }
  }
  class Main extends Base {
    field = 1
    time(): number {
      return this.field
    }
    // biome-ignore lint/suspicious/noThenProperty: what a handle must not have
    then(): void {}
  }
  const registry = new ServiceRegistry()
  registry.provide(giver('clocks'), clocks, new Main())
  const handle = registry.handle('clocks.main') as Record<string, (() => unknown) | undefined>
  t.same(Object.keys(handle).sort(), ['base', 'time'])
  t.equal(handle.time?.(), 1)
  t.equal(handle.base?.(), 'base')
  registry.provide(giver('clocks'), clocks, { time: () => 2 })
  t.throws(() => handle.base?.(), { code: 'E_PLUGIN_OFF' }, 'a method that the new version has not')
  t.end()
})

test('changes of a provider are told until the listener has ended', t => {
  const registry = new ServiceRegistry()
  const [run, over] = [giver('clocks'), new AbortController()]
  let changes = 0
  registry.onChange('clocks.main', () => changes++, over.signal)
  registry.provide(run, clocks, { time: () => 1 })
  t.equal(changes, 1)
  registry.withdraw(run.run)
  t.equal(changes, 2)
  registry.withdraw(run.run)
  t.equal(changes, 2, 'nothing was taken back')
  over.abort()
  registry.provide(run, clocks, { time: () => 1 })
  t.equal(changes, 2)
  t.end()
})

test('a key of an extension point is of one plugin, and a newer run takes the place of an older one', t => {
  const registry = new ServiceRegistry()
  const all = registry.contributions(hands)
  const [old, anew, other] = [giver('a'), giver('a'), giver('b')]
  registry.contribute(old, hands, 'hour', 1)
  registry.contribute(other, hands, 'minute', 2)
  t.same(all.keys(), ['hour', 'minute'])
  t.throws(
    () => registry.contribute(other, hands, 'hour', 3),
    /"hour" of the extension point "clocks\.hands" is already contributed by the plugin "a"/
  )
  registry.contribute(anew, hands, 'hour', 4)
  t.equal(all.get('hour'), 4)
  t.equal(all.get('second'), undefined)
  registry.withdraw(old.run)
  t.equal(all.get('hour'), 4)
  registry.contribute(anew, hands, 'second', 5)
  t.same(
    all.entries().map(({ key, plugin, value }) => [key, plugin, value]),
    [
      ['minute', 'b', 2],
      ['hour', 'a', 4],
      ['second', 'a', 5]
    ]
  )
  t.ok(Object.isFrozen(all.entries()))
  registry.withdraw(anew.run)
  t.same(all.keys(), ['minute'])
  t.end()
})

test('what is not provided in a registry is that of the one below', t => {
  const below = new ServiceRegistry()
  const registry = new ServiceRegistry(below)
  below.provide(giver('clocks'), { ...clocks, builtInOnly: true }, { time: () => 'below' })
  t.equal((registry.handle('clocks.main') as Clocks).time(), 'below')
  t.equal(registry.isBuiltInOnly('clocks.main'), true)
  t.equal(registry.isBuiltInOnly('clocks.other'), false)
  let changes = 0
  registry.onChange('clocks.main', () => changes++, new AbortController().signal)
  const own = giver('clocks')
  registry.provide(own, clocks, { time: () => 'here' })
  t.equal((registry.handle('clocks.main') as Clocks).time(), 'here')
  t.equal(registry.isBuiltInOnly('clocks.main'), false)
  t.equal(registry.providerRun('clocks.main'), own.run)
  registry.withdraw(own.run)
  t.equal((registry.handle('clocks.main') as Clocks).time(), 'below')
  t.equal(changes, 2)
  below.provide(giver('clocks'), clocks, { time: () => 'anew' })
  t.equal(changes, 3, 'changes below are told too')
  below.contribute(giver('a'), hands, 'hour', 1)
  t.same(registry.contributions(hands).keys(), ['hour'])
  t.end()
})

test('what stands until the end of a run is stopped once', t => {
  const end = new RunEnd()
  const stopped: string[] = []
  const early = end.unless(() => stopped.push('early'))
  end.unless(() => stopped.push('late'))
  early()
  early()
  t.same(stopped, ['early'])
  t.equal(end.hasCome, false)
  end.come()
  end.come()
  t.same(stopped, ['early', 'late'])
  t.equal(end.hasCome, true)
  t.end()
})
