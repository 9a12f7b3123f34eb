import type { ResourceDeclarer } from 'busbar/sdk'
import type { FileMounts } from './file-mounts.js'

/** Its rows go when somebody removes it, and with the application. */
export function resources(resource: ResourceDeclarer<FileMounts>): void {
  resource({
    kind: 'file_mount',
    table: 'file_mount',
    name: 'mount_path',
    parents: { application: 'application_id' }
  })
}
