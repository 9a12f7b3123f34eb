import { kernel, type ServiceBinder, type StartContext } from 'busbar/sdk'
import { certificateStore as certificateStoreKey, certificateUses } from './api.js'
import { CertificateService } from './certificate-service.js'
import { CertificateStore } from './certificate-store.js'
import { ExpiryWatch } from './expiry-watch.js'

export const needs = {
  db: kernel.database,
  secrets: kernel.secrets,
  clock: kernel.clock,
  events: kernel.events,
  uses: certificateUses
}

/** The running plugin. */
export interface Certificates {
  readonly certificates: CertificateService
  readonly expiry: ExpiryWatch
}

export function startCertificates({ use, log }: StartContext<typeof needs, unknown>): Certificates {
  const store = new CertificateStore(use.db)
  return {
    certificates: new CertificateService({ ...use, store, log }),
    expiry: new ExpiryWatch({ ...use, store })
  }
}

export function certificateServices(provide: ServiceBinder, { certificates }: Certificates): void {
  // These alone: uploading and deleting are for admins, by the routes.
  provide(certificateStoreKey, {
    find: async id => await certificates.find(id),
    open: async ids => await certificates.open(ids)
  })
}
