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
import { projectDirectory } from './api.js'
import { MemberService } from './member-service.js'
import { MemberStore } from './member-store.js'
import { ProjectService } from './project-service.js'
import { ProjectStore } from './project-store.js'

export const needs = {
  db: kernel.database,
  events: kernel.events,
  clock: kernel.clock,
  resources: kernel.resources,
  identity,
  facts: kernel.projectFacts
}

/** The running plugin. */
export interface Projects {
  readonly projects: ProjectService
  readonly members: MemberService
  readonly store: ProjectStore
}

const wholePage = { limit: wholeList.max, offset: 0 }

export function startProjects({ use }: StartContext<typeof needs, unknown>): Projects {
  const store = new ProjectStore(use.db)
  const members = new MemberStore(use.db)
  return {
    store,
    projects: new ProjectService({ ...use, store, members }),
    members: new MemberService({ ...use, members })
  }
}

export function projectServices(provide: ServiceBinder, { store, members }: Projects): void {
  provide(projectDirectory, {
    find: async (projectId, tx) => await store.find(projectId, tx),
    reachable: async reach => (await store.list(reach, wholePage)).rows,
    usersOf: async (projectId, at, tx) => await members.usersOf(projectId, at, tx),
    count: async () => await store.count(),
    recordActivity: async (projectId, at, tx) => {
      await store.recordActivity(projectId, at, tx)
    }
  })
}

export function projectContributions(contribute: Contributor, { store, projects }: Projects): void {
  contribute(access.projects, 'projects', { facts: async projectId => await store.facts(projectId) })
  contribute(userRemoval, 'projects', { refusal: async userId => await projects.refuseRemovalOf(userId) })
}
