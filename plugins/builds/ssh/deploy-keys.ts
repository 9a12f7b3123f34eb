import type { Clock, Database, Secrets } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { DeployKeyAnswer, HostKeyAnswer } from '../schemas.js'
import type { DeployKeyStore } from './deploy-key-store.js'
import type { HostKey } from './host-key.js'
import type { HostKeyStore } from './host-key-store.js'
import { makeOpenSshKey, type OpenSshKey } from './openssh-key.js'
import { sshProblems } from './problems.js'

interface DeployKeyParts {
  readonly db: Database
  readonly secrets: Pick<Secrets, 'seal' | 'open'>
  readonly clock: Clock
  readonly keys: DeployKeyStore
  readonly hosts: HostKeyStore
}

/** An application, and its project. */
interface Keyed {
  readonly projectId: string
  readonly applicationId: string
}

/** What clones and builds of one application use; the public part can be shown to anybody. */
export type DeployKey = Pick<OpenSshKey, 'publicKey' | 'privateKey'>

/** The hosts that one application knows. */
export interface KnownHosts {
  find(host: string): Promise<Pick<HostKey, 'key' | 'fingerprint'> | undefined>
  /** Of a host that was not known. */
  add(key: HostKey): Promise<void>
}

/** The key by which an application reads its repository over SSH, and the keys of the hosts where it does. */
export class DeployKeys {
  constructor(private readonly parts: DeployKeyParts) {}

  async get({ projectId, applicationId }: Keyed): Promise<DeployKeyAnswer> {
    const row = await this.parts.keys.find(projectId, applicationId)
    if (row === undefined) throw sshProblems.deployKeyMissing({ applicationId })
    return row
  }

  /** A new one; the former cannot be had any more. */
  async make({ projectId, applicationId }: Keyed): Promise<DeployKeyAnswer & { readonly wasThere: boolean }> {
    const { db, keys, secrets, clock } = this.parts
    return await db.transaction(async tx => {
      const slug = await keys.hold(projectId, applicationId, tx)
      if (slug === undefined) throw problems.applicationGone({ applicationId })
      const { publicKey, privateKey, fingerprint } = makeOpenSshKey(`busbar:${slug}`)
      const createdAt = clock.now()
      const sealed = secrets.seal(privateKey, placeOf(applicationId))
      const wasThere = await keys.put(applicationId, { publicKey, fingerprint, sealed, createdAt }, tx)
      return { public_key: publicKey, fingerprint, created_at: createdAt, wasThere }
    })
  }

  async delete({ projectId, applicationId }: Keyed): Promise<{ status: string }> {
    const { db, keys } = this.parts
    await db.transaction(async tx => {
      if ((await keys.hold(projectId, applicationId, tx)) === undefined)
        throw problems.applicationGone({ applicationId })
      if (!(await keys.remove(applicationId, tx))) throw sshProblems.deployKeyMissing({ applicationId })
    })
    return { status: 'deleted' }
  }

  async hostKeys({ applicationId }: Keyed): Promise<HostKeyAnswer[]> {
    return await this.parts.hosts.list(applicationId)
  }

  /** The next clone takes the key that the host shows then. */
  async forgetHosts({ applicationId }: Keyed): Promise<{ status: string }> {
    await this.parts.hosts.remove(applicationId)
    return { status: 'deleted' }
  }

  /** For a build of the application; undefined where it has none. */
  async find(applicationId: string): Promise<DeployKey | undefined> {
    const { keys, secrets } = this.parts
    const row = await keys.sealed(applicationId)
    return (
      row && {
        publicKey: row.public_key,
        privateKey: secrets.open(row.private_key, placeOf(applicationId))
      }
    )
  }

  knownHosts(applicationId: string): KnownHosts {
    const { hosts, clock } = this.parts
    return {
      find: async host => await hosts.find(applicationId, host),
      add: async key => await hosts.add(applicationId, key, clock.now())
    }
  }

  /** For an application that is being deleted. */
  async teardown(applicationId: string): Promise<void> {
    await this.parts.keys.remove(applicationId)
    await this.parts.hosts.remove(applicationId)
  }
}

const placeOf = (applicationId: string) => ({
  table: 'deploy_key',
  column: 'private_key',
  row: applicationId
})
