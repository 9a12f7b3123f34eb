import { resourceNames } from 'busbar/api/audit-logs'
import { identity } from 'busbar/api/identity'
import { userRemoval } from 'busbar/api/users'
import {
  access,
  type Contributor,
  kernel,
  type ServiceBinder,
  type StartContext,
  wholeList
} from 'busbar/sdk'
import { projectDirectory, projectTeardown } from './api.js'
import { MemberService } from './member-service.js'
import { MemberStore } from './member-store.js'
import { ProjectRemoval } from './project-removal.js'
import { ProjectService } from './project-service.js'
import { ProjectStore } from './project-store.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  events: kernel.events,
  clock: kernel.clock,
  dormant: kernel.dormant,
  identity,
  facts: kernel.projectFacts,
  teardowns: projectTeardown
}

/** The running plugin. */
export interface Projects {
  readonly projects: ProjectService
  readonly members: MemberService
  readonly removal: ProjectRemoval
  readonly store: ProjectStore
}

const wholePage = { limit: wholeList.max, offset: 0 }

export async function startProjects({ use, log }: StartContext<typeof needs, unknown>): Promise<Projects> {
  const store = new ProjectStore(use.db)
  const members = new MemberStore(use.db)
  const removal = new ProjectRemoval({ ...use, store, log })
  await removal.resume()
  return {
    store,
    removal,
    projects: new ProjectService({ ...use, store, members }),
    members: new MemberService({ ...use, members })
  }
}

export function projectServices(provide: ServiceBinder, { store }: Projects): void {
  provide(projectDirectory, {
    find: async (projectId, tx) => await store.find(projectId, tx),
    reachable: async reach => (await store.list(reach, wholePage)).rows,
    recordActivity: async (projectId, at, tx) => {
      await store.recordActivity(projectId, at, tx)
    }
  })
}

export function projectContributions(contribute: Contributor, { store, projects }: Projects): void {
  contribute(access.projects, 'projects', { facts: async projectId => await store.facts(projectId) })
  contribute(resourceNames, 'project', { namesOf: async ids => await store.namesOf(ids) })
  contribute(userRemoval, 'projects', { refusal: async userId => await projects.refuseRemovalOf(userId) })
}
