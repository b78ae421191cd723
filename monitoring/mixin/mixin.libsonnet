// Alerts and recording rules, in the form of the monitoring mixins.
(import 'config.libsonnet')
+ (import 'rules.libsonnet')
+ (import 'alerts.libsonnet')
