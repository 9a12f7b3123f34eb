interface Evidence {
  /** Whose frame the error was thrown in, if any. */
  readonly frame: string | undefined
  /** The third-party plugins whose code is on its stack, the one that threw it first. */
  readonly owners: readonly string[]
  /** The third-party plugin that the platform had handed it to, if any. */
  readonly handedTo: string | undefined
  readonly hasThirdPartyCode: boolean
  /** Whether code of the release, or what it depends on, is on its stack; not the SDK, which plugins run too. */
  readonly isOurs: boolean
}

interface Blame {
  readonly plugin: string | undefined
  /** Whether the connection that the frame serves is the one that it was thrown for. */
  readonly endsConnection: boolean
  /** Whether it is a fault of the kernel itself, which must not go on. */
  readonly endsProcess: boolean
}

/**
 * Whose an uncaught error is. Node calls some callbacks in no frame, and others in the frame of the plugin that
 * happens to run: a subscriber of a diagnostics channel in that of the connection that the message is about. There the stack
 * decides; and of an error of the platform's own services, on whose stack no plugin is, whom it was handed to. Node makes some errors itself, without any plugin's code on the stack: once third-party code has been loaded,
 * such a one may be of any plugin, and is no reason to end what all the others do.
 */
export function blame({ frame, owners, handedTo, hasThirdPartyCode, isOurs }: Evidence): Blame {
  const thrower = owners[0] ?? handedTo
  if (frame === undefined)
    return {
      plugin: thrower,
      endsConnection: false,
      endsProcess: thrower === undefined && (!hasThirdPartyCode || isOurs)
    }
  const isOthers = thrower !== undefined && thrower !== frame && !owners.includes(frame)
  return { plugin: isOthers ? thrower : frame, endsConnection: !isOthers, endsProcess: false }
}
