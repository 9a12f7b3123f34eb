import type { NotificationDeclarer } from 'busbar/sdk'
import { certificateExpired, certificateExpiring } from './api.js'

const group = 'Certificates'
const link = '/certificates'

export function notifications(notification: NotificationDeclarer): void {
  notification(certificateExpiring, {
    type: 'certificate.expiring',
    label: 'Certificate expires soon',
    description: 'A certificate that was uploaded ends within 30 days. Nobody but you can renew it.',
    group,
    severity: 'warn',
    audience: 'admins',
    title: 'The certificate {name} expires in {daysLeft} days',
    body: 'It ends at {notAfter}. Upload its successor under another name, let the domains use that, and delete this one.',
    link
  })
  notification(certificateExpired, {
    type: 'certificate.expired',
    label: 'Certificate expired',
    description: 'A certificate that was uploaded has ended: browsers refuse what is served with it.',
    group,
    severity: 'error',
    audience: 'admins',
    title: 'The certificate {name} has expired',
    body: 'It ended at {notAfter}. Upload its successor under another name, let the domains use that, and delete this one.',
    link
  })
}
