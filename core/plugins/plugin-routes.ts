import { allow, type RouteDeclarer } from 'busbar/sdk'
import { shownSettings } from '../config/shown-settings.js'
import { isEssential, manifestOf, type PluginEntry } from './plugin-entry.js'
import {
  disableBody,
  enableBody,
  type PluginView,
  params,
  pluginList,
  pluginView,
  purgeBody,
  purgedView,
  settingsBody
} from './plugin-schemas.js'
import { changesBusy, pluginProblems } from './problems.js'
import type { Reconciler } from './reconciler.js'

const group = 'Plugins (Admin)'
const admin = { role: 'admin', project: 'none' } as const
const enablingMs = 60_000
const purgingMs = 5 * 60_000

/** `/api/plugins`: what is installed, how it is, and turning it on and off while the platform serves. */
export function pluginRoutes(route: RouteDeclarer<{ reconciler: Reconciler }>): void {
  route({
    method: 'GET',
    url: '/api/plugins',
    operationId: 'ListPlugins',
    summary: 'List Plugins',
    description:
      'All that are installed, sorted by id, whether they run or not. The folders are read anew for it, and the health of what runs is asked for.',
    group,
    access: allow.token('read', admin),
    schema: { response: { 200: pluginList } },
    handler: async (_request, { reconciler }) => {
      await reconciler.rescan()
      await reconciler.checkHealth()
      return {
        items: [...reconciler.entries.values()]
          .sort((a, b) => (a.id < b.id ? -1 : 1))
          .map(entry => view(entry, reconciler))
      }
    }
  })
  route({
    method: 'GET',
    url: '/api/plugins/:pluginId',
    operationId: 'GetPlugin',
    summary: 'Get Plugin',
    problems: [pluginProblems.unknown],
    group,
    access: allow.token('read', admin),
    schema: { params, response: { 200: pluginView } },
    handler: async ({ params: { pluginId: id } }, { reconciler }) => {
      await reconciler.checkHealth()
      const entry = reconciler.entries.get(id)
      if (entry === undefined) throw pluginProblems.unknown({ id })
      return view(entry, reconciler)
    }
  })
  route({
    method: 'POST',
    url: '/api/plugins/:pluginId/enable',
    operationId: 'EnablePlugin',
    summary: 'Enable Plugin',
    description:
      'Turns the plugin on while the platform serves. For a plugin that is not part of the platform this is the consent to all that it asks for in `grants`.',
    problems: [
      pluginProblems.unknown,
      pluginProblems.dependencies,
      pluginProblems.rival,
      pluginProblems.unfit,
      pluginProblems.failed,
      changesBusy
    ],
    group,
    idempotent: true,
    access: allow.session(admin),
    audit: { action: 'enable_plugin', resource: 'plugin', id: { param: 'pluginId' } },
    timeoutMs: enablingMs,
    schema: { params, body: enableBody, response: { 200: pluginView } },
    handler: async ({ params, body }, { reconciler }) =>
      view(await reconciler.enable(params.pluginId, body), reconciler)
  })
  route({
    method: 'POST',
    url: '/api/plugins/:pluginId/reload',
    operationId: 'ReloadPlugin',
    summary: 'Reload Plugin',
    description:
      'Starts the version that is in the folder now beside the one that runs, and puts it in its place. When it does not start, the former one goes on.',
    problems: [
      pluginProblems.unknown,
      pluginProblems.notRunning,
      pluginProblems.dependencies,
      pluginProblems.rival,
      pluginProblems.unfit,
      pluginProblems.reloadFailed,
      pluginProblems.failed,
      changesBusy
    ],
    group,
    idempotent: true,
    access: allow.session(admin),
    audit: { action: 'reload_plugin', resource: 'plugin', id: { param: 'pluginId' } },
    timeoutMs: enablingMs,
    schema: { params, response: { 200: pluginView } },
    handler: async ({ params }, { reconciler }) => view(await reconciler.reload(params.pluginId), reconciler)
  })
  route({
    method: 'POST',
    url: '/api/plugins/:pluginId/purge',
    operationId: 'PurgePlugin',
    summary: 'Purge Plugin',
    description:
      'Removes for ever what a plugin that is off has stored: its tables, jobs, schedules, settings and files. The rows are written to a file of the installation before.',
    problems: [
      pluginProblems.unknown,
      pluginProblems.isOn,
      pluginProblems.purgeBlocked,
      pluginProblems.essential,
      changesBusy
    ],
    group,
    access: allow.session(admin),
    audit: { action: 'purge_plugin', resource: 'plugin', id: { param: 'pluginId' } },
    timeoutMs: purgingMs,
    schema: { params, body: purgeBody, response: { 200: purgedView } },
    handler: async ({ params, body }, { reconciler }) => {
      const { entry = goneEntry(params.pluginId), report } = await reconciler.purge(params.pluginId, {
        dryRun: body.dry_run
      })
      return {
        ...view(entry, reconciler),
        purge: { ...report, tables: [...report.tables], dry_run: body.dry_run ?? false }
      }
    }
  })
  route({
    method: 'POST',
    url: '/api/plugins/:pluginId/disable',
    operationId: 'DisablePlugin',
    summary: 'Disable Plugin',
    description:
      'Turns the plugin off while the platform serves. Its requests under way have ten seconds to end, and its data stays.',
    problems: [pluginProblems.unknown, pluginProblems.essential, pluginProblems.needed, changesBusy],
    group,
    access: allow.session(admin),
    audit: { action: 'disable_plugin', resource: 'plugin', id: { param: 'pluginId' } },
    timeoutMs: enablingMs,
    schema: { params, body: disableBody, response: { 200: pluginView } },
    handler: async ({ params, body }, { reconciler }) =>
      view(await reconciler.disable(params.pluginId, body), reconciler)
  })
  route({
    method: 'PUT',
    url: '/api/plugins/:pluginId/config',
    operationId: 'ConfigPlugin',
    summary: 'Configure Plugin',
    description:
      'Replaces all stored settings of the plugin, and starts it anew with them where it runs. They must fit its `config_schema`.',
    problems: [
      pluginProblems.config,
      pluginProblems.unknown,
      pluginProblems.failed,
      pluginProblems.reloadFailed,
      changesBusy
    ],
    group,
    access: allow.session(admin),
    audit: { action: 'configure_plugin', resource: 'plugin', id: { param: 'pluginId' } },
    timeoutMs: enablingMs,
    schema: {
      params,
      body: settingsBody,
      response: { 200: pluginView }
    },
    handler: async ({ params, body }, { reconciler }) =>
      view(await reconciler.configure(params.pluginId, body), reconciler)
  })
}

/** A plugin whose code is not there any more. */
const goneEntry = (id: string): PluginEntry => ({
  id,
  discovered: { id, directory: '', builtIn: false, fault: 'its code is gone' },
  state: { name: 'stopped', reason: 'its code is gone', since: new Date() },
  loaded: undefined,
  run: undefined,
  failures: 0
})

function view(entry: PluginEntry, reconciler: Reconciler): PluginView {
  const manifest = manifestOf(entry)
  const { records, definition } = entry.loaded ?? {}
  const stored = reconciler.catalog.choices.get(entry.id)?.config ?? {}
  return {
    id: entry.id,
    name: manifest?.name ?? entry.id,
    description: manifest?.description ?? '',
    version: manifest?.version ?? '',
    built_in: entry.discovered.builtIn,
    essential: isEssential(entry),
    wanted: reconciler.catalog.isWanted(entry),
    state: entry.state.name,
    reason: entry.state.reason,
    since: entry.state.since,
    requires: Object.keys(manifest?.requires ?? {}),
    optional: Object.keys(manifest?.optional ?? {}),
    implements: Object.keys(manifest?.implements ?? {}),
    dependents: reconciler.catalog.dependents(entry.id),
    grants: [...(manifest?.grants ?? [])],
    config: { ...stored },
    config_schema: shownSettings(definition?.config, stored, reconciler.options.variables),
    routes: records?.routes.length ?? 0,
    channels: records?.channels.map(({ name }) => name) ?? []
  }
}
