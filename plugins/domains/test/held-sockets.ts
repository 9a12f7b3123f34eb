import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { ProxyDriver } from '../api.js'
import { only, route, startContainer, table } from './driver-contract.js'

/** How long sockets are held: seconds in `npm test`; `HELD_MINUTES=60` when a driver has changed. */
const heldMs = Number(process.env.HELD_MINUTES ?? 0.1) * 60_000
const rounds = 10

/**
 * WebSockets stay open through switches of their application and changes of other domains: one that says something in every round,
 * and one that says nothing until the end.
 */
export async function heldSockets(
  t: Test,
  driver: ProxyDriver,
  { othersChange = true }: { readonly othersChange?: boolean } = {}
): Promise<void> {
  const versions = [await startContainer(t, 'a'), await startContainer(t, 'b')] as const
  const own = route({ hostname: 'www.example.com', applicationId: 'x' })
  await driver.retarget('x', only(versions[0]))
  await driver.load(table(own))
  const open = async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${driver.ports().http}/`, {
      headers: { Host: 'www.example.com' }
    })
    const heard: string[] = []
    const ends: string[] = []
    socket.on('message', message => heard.push(message.toString()))
    socket.on('error', error => ends.push(error.message))
    socket.on('close', code => ends.push(`closed with ${code}`))
    t.teardown(() => socket.terminate())
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    return { socket, heard, ends }
  }
  const talking = await open()
  const silent = await open()
  for (let round = 1; round <= rounds && talking.ends.length + silent.ends.length === 0; round++) {
    await sleep(heldMs / rounds)
    await (await driver.switchTo('x', only(versions[round % 2 === 0 ? 0 : 1])))?.drain(100)
    if (othersChange)
      await driver.load(table(own, route({ hostname: `other-${round}.example.com`, applicationId: 'y' })))
    talking.socket.send(`${round}`)
    await until(() => talking.heard.length === round || talking.ends.length > 0, `the echo of round ${round}`)
  }
  silent.socket.send('still here')
  await until(() => silent.heard.length > 0 || silent.ends.length > 0, 'the echo of the silent one')
  t.same([...talking.ends, ...silent.ends], [], 'neither was closed')
  t.same(
    talking.heard,
    Array.from({ length: rounds }, (_, index) => `a:${index + 1}`),
    'it speaks to the version that it was opened to'
  )
  t.same(silent.heard, ['a:still here'])
}
