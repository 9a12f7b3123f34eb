import { join } from 'node:path'
import { type HostPolicy, refusalOf } from 'busbar/sdk/http1'
import type { BackupStorage, DestinationKind, DestinationSettings } from '../api.js'

/** Where a provider is found that has one address for all, or one for each region. */
const hosts: Readonly<Record<string, (region: string) => string>> = {
  s3: () => '',
  b2: region => `s3.${region}.backblazeb2.com`,
  wasabi: region => `s3.${region}.wasabisys.com`
}

/** Amazon S3 and what speaks its protocol. */
export const s3Providers = ['s3', 'r2', 'b2', 'wasabi', 'minio', 'other'] as const

export const s3Destination = (policy: HostPolicy): DestinationKind => ({
  needs: ['bucket', 'keys'],
  open: async settings => {
    const { S3Storage } = await import('./s3-storage.js')
    const refuses = (host: string, address: string): string | null => {
      const refusal = refusalOf(policy, host, address)
      if (refusal === null) return null
      return refusal === 'metadata'
        ? `${host} leads to ${address}, where clouds hand out credentials: nothing is kept there`
        : `${host} leads to ${address}, a private address: an operator may allow it by BACKUP_PRIVATE_HOSTS`
    }
    return new S3Storage({ ...settings, endpoint: endpointOf(settings), refuses })
  }
})

/** The host that is asked; '' is Amazon's of the region. */
export const endpointOf = ({
  provider,
  endpoint,
  region
}: Pick<DestinationSettings, 'provider' | 'endpoint' | 'region'>): string =>
  endpoint === '' ? (hosts[provider]?.(region) ?? '') : endpoint

/** The provider whose files never leave this machine. */
export const localProvider = 'local'

/** A folder of this machine, of the project alone. */
export const localDestination = (root: string): DestinationKind => ({
  needs: [],
  open: async ({ projectId }) => await openLocal(root, projectId)
})

export async function openLocal(root: string, projectId: string): Promise<BackupStorage> {
  const { LocalStorage } = await import('./local-storage.js')
  return new LocalStorage(join(root, projectId))
}
