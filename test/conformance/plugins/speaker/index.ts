/** A plugin as an operator installs one: by its routes the conformance tests decide what is published, when, and by which process. */
import { allow, definePlugin, kernel, object, Type } from 'busbar/sdk'

const anyone = allow.token('read', { project: 'none' })
const inProject = allow.token('read', { project: { of: 'application', param: 'applicationId' } })
const sampleMs = 50
/** Numbered messages of a test are filled up to a length with this. */
const filling = 'x'

/** What the sources of its channels have done, in this process. */
interface Sources {
  running: number
  started: number
}

export default definePlugin({
  id: 'speaker',
  needs: { bus: kernel.bus, clock: kernel.clock },
  start: ({ use }) => ({ ...use, sources: { running: 0, started: 0 } as Sources }),
  channels(channel) {
    channel({
      name: 'x:speaker:said',
      summary: 'What it is asked to say',
      access: anyone,
      events: { said: Type.Any(), shouted: Type.Any() }
    })
    channel({
      name: 'x:speaker:other',
      summary: 'What it is asked to say elsewhere',
      access: anyone,
      events: { said: Type.Any() }
    })
    channel({
      name: 'x:speaker:admins',
      summary: 'What admins are told',
      access: allow.token('read', { role: 'admin', project: 'none' }),
      events: { said: Type.Any() }
    })
    channel({
      name: 'x:speaker:app:{applicationId}',
      summary: 'What is said of one application',
      access: inProject,
      events: { said: Type.Any(), done: Type.Null() },
      endsWith: 'done'
    })
    channel({
      name: 'x:speaker:sampled',
      summary: 'Numbers, while somebody listens',
      access: anyone,
      events: { said: Type.Integer() },
      source: ({ signal, publish }, { clock, sources }) => {
        sources.running++
        sources.started++
        let n = 0
        const stop = clock.every(sampleMs, () => {
          publish('said', n++)
        })
        signal.addEventListener(
          'abort',
          () => {
            sources.running--
            stop()
          },
          { once: true }
        )
      }
    })
  },
  routes(route) {
    route({
      method: 'POST',
      url: '/api/x/speaker/say',
      summary: 'Publish messages on a channel',
      access: allow.token('write', { project: 'none' }),
      schema: {
        body: object({
          channel: Type.String(),
          event: Type.String(),
          data: Type.Any(),
          /** Instead of `data`: so many numbered messages, from this number on, each of that length. */
          numbered: Type.Optional(
            object({ from: Type.Integer(), count: Type.Integer(), characters: Type.Integer() })
          )
        }),
        response: { 200: object({ isHeard: Type.Boolean() }) }
      },
      handler: async ({ body: { channel, event, data, numbered } }, { bus }) => {
        const isHeard = bus.hasSubscribers(channel)
        if (numbered === undefined) bus.publish(channel, event, data)
        else
          for (let n = numbered.from; n < numbered.from + numbered.count; n++)
            bus.publish(channel, event, { n, text: filling.repeat(numbered.characters) })
        return { isHeard }
      }
    })
    route({
      method: 'GET',
      url: '/api/x/speaker/sources',
      summary: 'What the sources of this process have done',
      access: anyone,
      schema: { response: { 200: object({ running: Type.Integer(), started: Type.Integer() }) } },
      handler: (_request, { sources }) => ({ ...sources })
    })
  }
})
