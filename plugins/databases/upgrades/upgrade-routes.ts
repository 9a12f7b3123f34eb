import { engineProblems } from 'busbar/api/containers'
import { allow, pagedList, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import { inDatabase } from '../api.js'
import type { Databases } from '../databases.js'
import { invalidField, onOne, problems } from '../problems.js'
import { upgradeAnswer, upgradeBody } from '../schemas.js'

const group = 'Databases'
const one = '/api/projects/:projectId/databases/:databaseId'
const id = { param: 'databaseId' } as const

export function upgradeRoutes(route: RouteDeclarer<Databases>) {
  route({
    method: 'POST',
    url: `${one}/upgrade`,
    group,
    operationId: 'UpgradeDatabase',
    summary: 'Upgrade Version',
    description:
      'Brings the database to another version: all of its databases and roles are restored beside the running server for a trial, then, with nothing written any more, once more, and compared; only then it is switched. The old volume is kept until it is confirmed, for some days at most. Whatever fails brings the old server back with its data; where the new one has served by then, its volume is kept instead. It is done afterwards: `status` is `upgrading`, `status_detail` says how far it is, `GET …/upgrades` what was done.',
    problems: [
      ...onOne,
      invalidField,
      problems.notUpgradable,
      problems.olderVersion,
      problems.busy,
      problems.notRunning,
      problems.unreadable
    ],
    idempotent: true,
    access: allow.token('write', { project: inDatabase }),
    schema: { body: upgradeBody, response: { 200: statusResponse } },
    audit: { action: 'upgrade_database', resource: 'database', id },
    handler: async ({ project, params, body }, { upgrades }) =>
      await upgrades.begin(project, params.databaseId, body.target_version)
  })
  route.list({
    url: `${one}/upgrades`,
    group,
    operationId: 'ListDatabaseUpgrades',
    summary: 'Get Upgrades',
    description: 'The upgrades of the database, the newest first, with what was done.',
    problems: onOne,
    items: upgradeAnswer,
    page: pagedList,
    access: allow.token('read', { project: inDatabase }),
    handler: async ({ project, params, page }, { upgrades }) =>
      await upgrades.list(project, params.databaseId, page)
  })
  route({
    method: 'POST',
    url: `${one}/upgrades/confirm`,
    group,
    operationId: 'ConfirmDatabaseUpgrade',
    summary: 'Confirm Upgrade',
    description:
      'The upgrade has proven itself: the volume that it keeps is removed now, and cannot be gone back to.',
    problems: [...onOne, problems.noUpgrade, problems.containersOff, ...engineProblems],
    idempotent: true,
    access: allow.session({ project: inDatabase }),
    schema: { response: { 200: statusResponse } },
    audit: { action: 'confirm_database_upgrade', resource: 'database', id },
    handler: async ({ project, params }, { upgrades }) => await upgrades.confirm(project, params.databaseId)
  })
}
