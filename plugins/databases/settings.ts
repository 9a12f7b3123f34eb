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
  ssh_host: maybe(fromEnvironment('SERVER_SSH_HOST', Type.String())),
  ssh_user: maybe(fromEnvironment('SERVER_SSH_USER', Type.String()))
})
export type Settings = Static<typeof settings>
