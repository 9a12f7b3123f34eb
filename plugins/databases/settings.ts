import { described, fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  ready_seconds: described(
    Type.Integer({ default: 180, minimum: 10, maximum: 3600 }),
    'How long a new container may take until its server answers.'
  ),
  upgrade_keep_days: described(
    Type.Integer({ default: 7, minimum: 1, maximum: 365 }),
    'How long the old volume is kept after an upgrade that nobody has confirmed, and how long one that may have taken rows when an upgrade or a restore was given up.'
  ),
  external_bind: fromEnvironment(
    'BUSBAR_DATABASE_BIND',
    Type.String({
      default: '127.0.0.1',
      description:
        'The address that ports of external access are opened on. Another than 127.0.0.1 only where the platform runs in a container, whose published ports lead there'
    })
  ),
  external_ports: maybe(
    fromEnvironment(
      'BUSBAR_DATABASE_PORTS',
      Type.String({ description: 'The ports of external access; any free one unless set' }),
      { takes: 'two ports from 1 to 65535, the lower first, like 25000-25009', parse: parsePorts }
    )
  ),
  ssh_host: maybe(fromEnvironment('SERVER_SSH_HOST', Type.String())),
  ssh_user: maybe(fromEnvironment('SERVER_SSH_USER', Type.String()))
})
export type Settings = Static<typeof settings>

export interface PortRange {
  readonly first: number
  readonly last: number
}

function parsePorts(range: string): PortRange | undefined {
  const [first, last, ...more] = range
    .split('-')
    .map(part => (/^\d{1,5}$/.test(part.trim()) ? Number(part) : Number.NaN))
  return first !== undefined &&
    last !== undefined &&
    more.length === 0 &&
    first >= 1 &&
    first <= last &&
    last <= 65_535
    ? { first, last }
    : undefined
}
