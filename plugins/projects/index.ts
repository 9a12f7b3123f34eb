import { resourceNames } from 'busbar/api/audit-logs'
import { identity } from 'busbar/api/identity'
import { userRemoval } from 'busbar/api/users'
import { access, definePlugin, kernel, wholeList } from 'busbar/sdk'
import { projectDirectory, projectTeardown, type ProjectDirectory } from './api.js'
import { jobs } from './jobs.js'
import { MemberService } from './member-service.js'
import { MemberStore } from './member-store.js'
import { m001 } from './migrations/001-create-projects.js'
import { m002 } from './migrations/002-create-members.js'
import { ProjectRemoval } from './project-removal.js'
import { ProjectService } from './project-service.js'
import { ProjectStore } from './project-store.js'
import { routes } from './routes.js'

/** The running plugin. */
export interface Projects {
  readonly projects: ProjectService
  readonly members: MemberService
  readonly removal: ProjectRemoval
  readonly directory: ProjectDirectory
  readonly store: ProjectStore
}

const wholePage = { limit: wholeList.max, offset: 0 }

export default definePlugin({
  id: 'projects',
  needs: {
    db: kernel.database,
    jobs: kernel.jobs,
    events: kernel.events,
    clock: kernel.clock,
    dormant: kernel.dormant,
    identity,
    facts: kernel.projectFacts,
    teardowns: projectTeardown
  },
  migrations: [m001, m002],
  async start ({ use, log }): Promise<Projects> {
    const store = new ProjectStore(use.db)
    const members = new MemberStore(use.db)
    const removal = new ProjectRemoval({ ...use, store, log })
    await removal.resume()
    return {
      store,
      removal,
      projects: new ProjectService({ ...use, store, members }),
      members: new MemberService({ ...use, members }),
      directory: {
        find: async (projectId, tx) => await store.find(projectId, tx),
        reachable: async reach => (await store.list(reach, wholePage)).rows,
        recordActivity: async (projectId, at, tx) => { await store.recordActivity(projectId, at, tx) }
      }
    }
  },
  provides (provide, { directory }) {
    provide(projectDirectory, directory)
  },
  contributes (contribute, { store, projects }) {
    contribute(access.projects, 'projects', { facts: async projectId => await store.facts(projectId) })
    contribute(resourceNames, 'project', { namesOf: async ids => await store.namesOf(ids) })
    contribute(userRemoval, 'projects', { refusal: async userId => await projects.refuseRemovalOf(userId) })
  },
  routes,
  jobs
})
