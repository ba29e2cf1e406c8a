SELECT
  `t2`.`item`,
  COALESCE(`t7`.`score`, 0) AS `score`
FROM (
  SELECT
    CAST(`item` AS STRING) AS `item`
  FROM VALUES
    ('tea'),
    ('it\'s \\ 😀'),
    ('rum ') AS listed(`item`)
) AS `t2`
LEFT OUTER JOIN (
  SELECT
    `t5`.`item`,
    COUNT(DISTINCT `t5`.`who`) AS `score`
  FROM (
    SELECT
      CAST(`t4`.`customer` AS BINARY) AS `who`,
      CAST(`t4`.`product` AS BINARY) AS `item`
    FROM (
      SELECT
        *
      FROM (
        SELECT
          *
        FROM `mart`.`sales` AS `t1`
        WHERE
          CAST(NULL AS BIGINT) + 719163 BETWEEN 739617 AND 739647
          OR CASE
            WHEN TYPEOF(`t1`.`at`) = 'timestamp'
            THEN UNIX_SECONDS(TO_TIMESTAMP_LTZ(`t1`.`at`))
            ELSE (
              DATEDIFF(DAY, CAST('1970-01-01' AS DATE), CAST(`t1`.`at` AS DATE)) * 86400
            ) + (
              (
                HOUR(`t1`.`at`) * 3600
              ) + (
                MINUTE(`t1`.`at`) * 60
              ) + SECOND(`t1`.`at`)
            )
          END + 62135683200 BETWEEN 63902908800 AND 63905587199
      ) AS `t3`
      WHERE
        CAST(TRIM(`t3`.`country`) AS BINARY) = CAST('DE' AS BINARY)
        AND `t3`.`day` >= MAKE_DATE(2026, 1, 1)
        AND CAST(CAST(`t3`.`product` AS BINARY) AS STRING) LIKE 't%'
        AND `t3`.`amount` < CAST('2.5' AS DOUBLE)
        AND `t3`.`price` >= CAST('1.51' AS DECIMAL(12, 2))
    ) AS `t4`
  ) AS `t5`
  GROUP BY
    1
) AS `t7`
  ON CAST(`t2`.`item` AS BINARY) = `t7`.`item`
