import type { Kernel } from '../../core/kernel.js'
import { strictBody, validatorOf } from '../../core/schemas/schemas.js'

interface WatchedMessages {
  /** What was published and is not as its channel declares it: `log on build-logs:{deploymentId}: …`, each once. */
  undeclared(): readonly string[]
  /** Publishes what nobody compares, for tests of who hears it. */
  publish(channel: string, event: string, data: unknown): void
}

/** Compares what plugins publish with the schemas of their channels, from now on. */
export function watchMessages({ hub, reconciler }: Kernel): WatchedMessages {
  const undeclared = new Set<string>()
  const publish = hub.publish.bind(hub)
  const schemaOf = (channel: string, event: string) => {
    for (const { run } of reconciler.entries.values())
      for (const { prefix, param, name, events } of run?.records.channels ?? [])
        if (param === null ? channel === name : channel.startsWith(prefix))
          return { name, schema: Object.hasOwn(events, event) ? events[event] : undefined }
    return undefined
  }
  hub.publish = (channel, event, data) => {
    const declared = schemaOf(channel, event)
    if (declared?.schema !== undefined) {
      const text = JSON.stringify(data ?? null)
      const value: unknown = JSON.parse(text)
      const validate = validatorOf(strictBody(declared.schema), 'body')
      const where = `${event} on ${declared.name}`
      if (!validate(value)) {
        const [fault] = validate.errors ?? []
        undeclared.add(`${where}: ${fault?.instancePath ?? ''} ${fault?.message ?? ''}`)
      } else if (JSON.stringify(value) !== text) undeclared.add(`${where}: has fields that are not declared`)
    } else if (declared !== undefined) undeclared.add(`${event} on ${declared.name}: is not declared`)
    publish(channel, event, data)
  }
  return { undeclared: () => [...undeclared].sort(), publish }
}
