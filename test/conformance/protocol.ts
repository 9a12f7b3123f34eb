import { randomUUID } from 'node:crypto'
import type { Claim } from './claims.js'
import { unique } from './stage.js'

const said = 'x:speaker:said'
const other = 'x:speaker:other'
const refusal = { event: 'error', data: { error: 'access denied' } }

/** Frames, and what is refused. */
export const protocolClaims: readonly Claim[] = [
  {
    says: [
      'Every frame is JSON.',
      'Server frame: `{ channel, event, data }`.',
      'Dispatch on channel, then event.'
    ],
    async holds(t, stage) {
      const client = await stage.connect(stage.cast.owner.session)
      await stage.hears(client, said, other)
      await stage.say(said, 1)
      await stage.say(said, 2, 'shouted')
      await stage.say(other, 3)
      client.subscribe('nowhere')
      await client.refusal('nowhere')
      await client.next(({ channel, data }) => channel === other && data === 3, 'what was said last')
      t.notOk(
        client.texts.some(text => text.startsWith('binary')),
        'each is a text frame'
      )
      for (const text of client.texts)
        t.same(Object.keys(JSON.parse(text)).sort(), ['channel', 'data', 'event'], text)
      t.same(
        client.on(said).slice(-2),
        [
          { channel: said, event: 'said', data: 1 },
          { channel: said, event: 'shouted', data: 2 }
        ],
        'one channel carries several events'
      )
    }
  },
  {
    says: ['Client frame: `{ action, channel }`.'],
    async holds(t, stage) {
      const client = await stage.connect(stage.cast.owner.session)
      for (const frame of [
        JSON.stringify({ action: 'subscribe', channel: said }),
        JSON.stringify({ channel: other, more: [1, { deep: true }], action: 'subscribe' }),
        Buffer.from(' {"action":"subscribe",\n"channel":"x:speaker:app:'.concat(stage.of.applicationId, '"}'))
      ])
        client.send(frame)
      for (const channel of [said, other, `x:speaker:app:${stage.of.applicationId}`])
        await stage.stillHears(client, channel)
      client.unsubscribe(other)
      await stage.stillHears(client, said)
      await stage.nothingMore(client, other, said)
      t.equal(client.end, undefined)
    }
  },
  {
    says: [
      '`action` is `subscribe` or `unsubscribe`; any other action, or an empty channel, is silently ignored.',
      'The only event mechanism is the WebSocket at `/api/ws` (read-only; no deploy or write actions).'
    ],
    async holds(t, stage) {
      const client = await stage.connect(stage.cast.owner.session)
      await stage.hears(client, said)
      const before = client.texts.length
      for (const action of ['publish', 'deploy', 'ping', 'Subscribe', 'subscribe ', '', 'constructor'])
        client.ask(action, other, `x:speaker:app:${stage.of.applicationId}`)
      client.subscribe('')
      client.unsubscribe('', 'nowhere', other)
      for (const frame of [{}, { action: 'subscribe' }, { channel: other }, { action: 'deploy' }])
        client.send(JSON.stringify(frame))
      await client.drained()
      t.equal(client.texts.length, before, 'nothing is answered')
      await stage.nothingMore(client, other, said)
      t.equal(client.end, undefined)
    }
  },
  {
    says: [
      'A successful subscribe is not acknowledged; messages simply start.',
      'No history from before the subscription is sent on any channel.'
    ],
    async holds(t, stage) {
      const [witness, client] = [
        await stage.connect(stage.cast.owner.session),
        await stage.connect(stage.cast.owner.session)
      ]
      const before = unique('before')
      await stage.hears(witness, said)
      await stage.say(said, before)
      await witness.next(({ data }) => data === before, 'the word')
      await stage.hears(client, said)
      t.notOk(
        client.texts.some(text => text.includes(before)),
        'what was said before does not come'
      )
      t.notOk(
        client.frames.some(({ event }) => event !== 'said'),
        'and nothing but messages'
      )
    }
  },
  {
    says: ['`data` passes through unchanged from its producer, so its shape depends on the channel.'],
    async holds(t, stage) {
      const client = await stage.connect(stage.cast.owner.session)
      await stage.hears(client, said)
      const values = [
        null,
        true,
        0,
        -1.5e-7,
        '',
        'ä €  \n " \\ 😀  ',
        [],
        [[1], { a: null }],
        {},
        { channel: 'x', event: 'y', data: { nested: { deeply: ['z'] } }, __proto__x: 1 }
      ]
      const from = client.on(said).length
      for (const value of values) await stage.say(said, value)
      await stage.stillHears(client, said)
      t.same(
        client
          .on(said)
          .slice(from, from + values.length)
          .map(({ data }) => data),
        values
      )
    }
  },
  {
    says: [
      'A refused subscribe is answered on the requested channel with event `error` and data `{ error: access denied }`.',
      'The message is identical for forbidden and for non-existent resources.',
      'The socket stays open and other subscriptions are unaffected.',
      'Refused: an unlisted channel, an id that does not exist, an id not in lowercase hyphenated form.'
    ],
    async holds(t, stage) {
      const { applicationId: id, projectId } = stage.of
      const client = await stage.connect(stage.cast.stranger.session)
      await stage.hears(client, said)
      const forbidden = `x:speaker:app:${id}`
      const refused = [
        forbidden,
        `container-status:${id}`,
        `metrics:app:${id}`,
        'metrics:host',
        'x:speaker:admins',
        `x:speaker:app:${randomUUID()}`,
        `container-status:${randomUUID()}`,
        `container-status:${projectId}`,
        `build-logs:${id}`,
        'nowhere',
        'platform ',
        'Platform',
        'x:speaker:nowhere',
        'container-status:',
        'container-status:1',
        `container-status:${id.toUpperCase()}`,
        `container-status:${id.replaceAll('-', '')}`,
        `container-status:{${id}}`,
        `container-status:urn:uuid:${id}`,
        `container-status:${id} `,
        `container-status: ${id}`,
        `CONTAINER-STATUS:${id}`,
        'container-status:{applicationId}',
        `platform:${id}`,
        '__proto__',
        'x'.repeat(3000)
      ]
      client.subscribe(...refused)
      for (const channel of refused) await client.refusal(channel)
      t.same(
        client.frames
          .filter(({ event }) => event === 'error')
          .sort((a, b) => (a.channel < b.channel ? -1 : 1)),
        [...refused].sort().map(channel => ({ channel, ...refusal })),
        'one answer to each, whatever the reason'
      )
      await stage.stillHears(client, said)
      const owner = await stage.connect(stage.cast.owner.session)
      owner.subscribe(`x:speaker:app:${id.toUpperCase()}`)
      await owner.refusal(`x:speaker:app:${id.toUpperCase()}`)
      await stage.hears(owner, forbidden)
    }
  },
  {
    says: [
      'Malformed JSON closes 1007; JSON that is no object, or a channel that is no string, is ignored; a frame over 4 KiB closes 1009.'
    ],
    async holds(t, stage) {
      const connect = async () => await stage.connect(stage.cast.owner.session)
      const patient = await connect()
      await stage.hears(patient, said)
      const before = patient.texts.length
      for (const frame of [
        '[]',
        '"subscribe"',
        'null',
        '7',
        'true',
        '[{"action":"subscribe","channel":"nowhere"}]'
      ])
        patient.send(frame)
      patient.ask('subscribe', 7, null, true, ['nowhere'], { name: 'nowhere' })
      patient.send(JSON.stringify({ action: 'none', channel: 'x' }).padEnd(4096))
      await patient.drained()
      t.equal(patient.texts.length, before)
      for (const [frame, code] of [
        ['{"action":', 1007],
        ['', 1007],
        [Buffer.from([0xff, 0xfe, 0x00]), 1007],
        [JSON.stringify({ action: 'none', channel: 'x' }).padEnd(4097), 1009],
        ['x'.repeat(60_000), 1009]
      ] as const) {
        const client = await connect()
        client.send(frame)
        t.equal((await client.closed()).code, code, String(frame).slice(0, 20))
      }
      await stage.stillHears(patient, said)
    }
  },
  {
    says: ['A duplicate subscribe changes nothing.'],
    async holds(t, stage) {
      const client = await stage.connect(stage.cast.owner.session)
      client.subscribe(said, said)
      await stage.hears(client, said, other)
      const word = unique('once')
      await stage.say(said, word)
      await stage.stillHears(client, said)
      t.equal(client.on(said).filter(({ data }) => data === word).length, 1)
      client.unsubscribe(said)
      await stage.stillHears(client, other)
      await stage.nothingMore(client, said, other)
    }
  },
  {
    says: ['A source starts with the first subscriber and stops with the last.'],
    async holds(t, stage) {
      const sampled = 'x:speaker:sampled'
      const sources = async (): Promise<{ running: number; started: number }[]> =>
        await Promise.all(
          stage.listeningUrls.map(
            async url =>
              (await stage.act(stage.cast.owner.session, 'GET', '/api/x/speaker/sources', undefined, url))
                .body
          )
        )
      const running = async (): Promise<number> =>
        Math.max(...(await sources()).map(({ running: count }) => count))
      const before = await sources()
      t.equal(await running(), 0, 'nothing runs for nobody')
      const clients = []
      for (let n = 0; n < 4; n++) clients.push(await stage.connect(stage.cast.owner.session))
      const [first, second, third, fourth] = clients
      for (const client of clients) {
        client.subscribe(sampled)
        await client.next(({ channel }) => channel === sampled, 'a number')
      }
      t.same(
        await sources(),
        before.map(({ started }) => ({ running: 1, started: started + 1 })),
        'one for all subscribers of a process'
      )
      first?.unsubscribe(sampled)
      await second?.close()
      third?.socket.terminate()
      const heard = fourth?.frames.length ?? 0
      await stage.waits(() => (fourth?.frames.length ?? 0) > heard + 2, 'it goes on for the last one')
      fourth?.unsubscribe(sampled)
      await stage.waits(async () => (await running()) === 0, 'it stops')
      fourth?.subscribe(sampled)
      await stage.waits(async () => (await running()) === 1, 'it starts again')
      await fourth?.close()
      await stage.waits(async () => (await running()) === 0, 'it stops with the socket')
    }
  },
  {
    says: ['A message reaches subscribers of every process, however long it is.'],
    async holds(t, stage) {
      const clients = [
        await stage.connect(stage.cast.owner.session),
        await stage.connect(stage.cast.owner.session)
      ]
      for (const client of clients) await stage.hears(client, said)
      const lengths = [100, 7_000, 7_900, 8_100, 20_000, 65_000, 200_000, 1_000_000]
      for (const [n, characters] of lengths.entries()) await stage.sayNumbered(said, n, 1, characters)
      for (const client of clients) {
        await client.next(({ data }) => data?.n === lengths.length - 1, 'the longest')
        t.same(
          client
            .on(said)
            .flatMap(({ data }) => (data?.n === undefined ? [] : [[data.n, (data.text as string).length]])),
          [...lengths.entries()],
          'in their order'
        )
      }
    }
  }
]
