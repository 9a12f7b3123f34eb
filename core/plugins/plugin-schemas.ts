import {
  described,
  list,
  maybe,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  Type,
  timestamp
} from 'busbar/sdk'
import { pluginStates } from './plugin-entry.js'

export const params = {
  pluginId: described(
    Type.String({ pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$', maxLength: 40 }),
    'The `id` of the plugin: the name of its folder.'
  )
}

const names = list(Type.String())

export const pluginView = named(
  'Plugin',
  object({
    id: described(Type.String(), 'The name of its folder, by which paths and other plugins call it.'),
    name: described(Type.String(), 'What people call it.'),
    description: described(
      Type.String(),
      'What it does, in a sentence; empty where its manifest cannot be read.'
    ),
    version: described(
      Type.String(),
      'The semantic version in its folder; empty where its manifest cannot be read.'
    ),
    built_in: described(
      Type.Boolean(),
      'Whether it is part of the platform. Others are off until they are turned on.'
    ),
    essential: described(
      Type.Boolean(),
      'Whether the platform does not run without it: it cannot be turned off.'
    ),
    wanted: described(
      Type.Boolean(),
      'Whether it is to run, as an operator has chosen or its kind has it. What it does is `state`.'
    ),
    state: described(
      oneOf(pluginStates),
      'What it does now. `running` serves; `degraded` serves too, and something is wrong with it; `installed` and `stopped` are off; `blocked` waits for what it requires; `misconfigured`, `migration-failed` and `failed` did not start; `retrying` is tried again; `quarantined` is kept off, as the platform ended while it was started.'
    ),
    reason: described(nullable(Type.String()), 'Why it is in that state; null when there is nothing to say.'),
    since: described(timestamp(), 'Since when it has been in that state.'),
    requires: described(names, 'The plugins and contracts that must run for it to run.'),
    optional: described(names, 'The plugins and contracts that it uses when they are there.'),
    implements: described(names, 'The contracts whose services it provides.'),
    dependents: described(
      names,
      'The plugins that need it, directly or through others: they are off when it is.'
    ),
    grants: described(
      names,
      'The services of the kernel that it asks for. To turn a plugin on that is not part of the platform is to consent to them.'
    ),
    config: described(
      Type.Record(Type.String(), Type.Unknown()),
      'The settings that are stored for it; what is left out has its default, or what a variable of the environment says.'
    ),
    config_schema: described(
      nullable(Type.Record(Type.String(), Type.Unknown())),
      'The JSON schema of its settings, where each says what it is now: `x-value`, with `x-source` `default`, `stored` or `environment` (then `x-environment` names the variable). Null for a plugin without settings.'
    ),
    routes: described(Type.Integer(), 'How many operations it declares.'),
    channels: described(names, 'The live channels that it declares.')
  }),
  { description: 'A plugin that is installed, and how it is.' }
)
export type PluginView = Static<typeof pluginView>

export const pluginList = named(
  'PluginList',
  object({ items: described(list(pluginView), 'All that are installed, by `id`.') }),
  { description: 'The plugins of the instance.' }
)

const table = named(
  'PurgedTable',
  object({
    name: described(Type.String(), 'The name of the table in the schema.'),
    rows: described(Type.Integer(), 'How many rows it has, or had.')
  }),
  { description: 'A table that a purge removes.' }
)

export const purgedView = named(
  'PurgedPlugin',
  object({
    ...pluginView.properties,
    purge: described(
      object({
        dry_run: described(Type.Boolean(), 'Whether nothing was removed, as the body asked.'),
        schema: described(Type.String(), 'The schema of the database that is removed.'),
        tables: described(list(table), 'Its tables.'),
        jobs: described(Type.Integer(), 'How many jobs waited.'),
        settings: described(Type.Boolean(), 'Whether there were settings or consents of an operator.'),
        files: described(Type.Boolean(), 'Whether there were files in its folder.'),
        dump: described(
          nullable(Type.String()),
          'The file on the machine of the platform into which all rows were written before; null when nothing was removed, or there were no tables.'
        )
      }),
      'What was removed, or would be.'
    )
  }),
  { description: 'A plugin, with what was removed of what it had stored.' }
)

export const enableBody = named(
  'EnablePlugin',
  object({
    cascade: described(
      maybe(Type.Boolean()),
      'True also turns on what was turned off together with it by `cascade`. False unless given.'
    )
  }),
  { description: 'How to turn it on. May be left out.', examples: [{ cascade: true }] }
)
export const purgeBody = named(
  'PurgePlugin',
  object({
    dry_run: described(
      maybe(Type.Boolean()),
      'True removes nothing and answers what would be removed. False unless given.'
    )
  }),
  { description: 'Whether to remove. May be left out, which removes.', examples: [{ dry_run: true }] }
)
export const disableBody = named(
  'DisablePlugin',
  object({
    cascade: described(
      maybe(Type.Boolean()),
      'True also turns off all plugins that need it; without this or `force` they make the answer 409. False unless given.'
    ),
    force: described(
      maybe(Type.Boolean()),
      'True leaves those that need it turned on: they stop, and wait for it as `blocked`. False unless given.'
    )
  }),
  { description: 'How to turn it off. May be left out.', examples: [{ cascade: true }] }
)
export const settingsBody = named('PluginSettings', Type.Record(Type.String(), Type.Unknown()), {
  description:
    'All settings that are to be stored for the plugin, as its `config_schema` says; they take the place of those before, so what is left out has its default again.',
  examples: [{ retention_days: 365 }]
})
