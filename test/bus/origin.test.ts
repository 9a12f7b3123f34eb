import { test } from 'tap'
import { originAllowed } from '../../core/bus/origin.js'

test('a page of the same host, a listed one, and whoever is no page may open a socket', async t => {
  const allowed = [
    [undefined, 'busbar.example'],
    ['http://busbar.example', 'busbar.example'],
    ['https://BUSBAR.example', 'busbar.example'],
    ['https://busbar.example', 'busbar.example:443'],
    ['http://127.0.0.1:8080', '127.0.0.1:8080'],
    ['http://[::1]:8080', '[::1]:8080'],
    ['https://App.example', 'busbar.example']
  ] as const
  for (const [origin, host] of allowed)
    t.ok(originAllowed(origin, host, ['https://app.example']), `${origin} at ${host}`)
})

test('every other page is refused', async t => {
  const refused = [
    ['https://evil.example', 'busbar.example'],
    ['http://busbar.example:81', 'busbar.example'],
    ['http://busbar.example.evil', 'busbar.example'],
    ['null', 'busbar.example'],
    ['', 'busbar.example'],
    ['busbar.example', 'busbar.example'],
    ['file://', ''],
    ['https://app.example.evil', 'x'],
    ['http://busbar.example', undefined],
    ['http://a@busbar.example', 'a@busbar.example:1']
  ] as const
  for (const [origin, host] of refused)
    t.notOk(originAllowed(origin, host, ['https://app.example']), `${origin} at ${host}`)
})
